"""Whether the folders of files are parts of something else, and no classes.

They are shards, the clips of videos, or the halves of pairs, which have the same names of files.
All functions take the files of each folder: their names without suffix, and the suffix.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from itertools import chain, pairwise
from typing import TypeAlias

from recordgen.formats.field_kinds import words_of
from recordgen.formats.folder_names import ANNOTATIONS, HALVES, PAIRED

#: The suffix of each file by its name without it, by folder.
Folders: TypeAlias = "Mapping[str, Mapping[str, str]]"

#: The suffixes of texts.
TEXTS = frozenset({".txt", ".md", ".rst", ".html", ".htm", ""})


def _marks(some: Set[str]) -> re.Pattern[str]:
    """Return a pattern for words in the name of a file."""
    return re.compile(rf"(?<![^\W\d_])(?:{'|'.join(sorted(some))})(?![^\W\d_])", re.IGNORECASE)


#: A word for one half in the name of a file.
MARK = _marks(PAIRED)
#: The same without sides: the left and the right eye of a person are of one class.
HALF = _marks(ANNOTATIONS | HALVES)

_DIGITS = re.compile(r"\d+")
_HASH, _MIXED = re.compile(r"[0-9a-f]{8,}"), re.compile(r"\d[a-f]|[a-f]\d")
# More folders of the same names are rather classes than the parts of pairs.
MOST_PARTS = 3


def are_parts(folders: Folders) -> bool:
    """Return whether folders divide one whole, or hold the same files."""
    return _are_shards(folders) or _hold_the_same(folders)


def are_clips(folders: Folders) -> bool:
    """Return whether folders are numbered parts of a few kinds, and files have one form.

    ``v_YoYo_g01_c01/frame1.jpg, v_YoYo_g01_c02/frame1.jpg, v_Biking_g01_c01/frame1.jpg, …``
    """
    kinds = {_DIGITS.sub("#", folder) for folder in folders}
    forms = {_DIGITS.sub("#", stem) for stem in chain.from_iterable(folders.values())}
    return 1 < len(kinds) <= len(folders) // 2 and len(forms) == 1


def _are_shards(folders: Folders) -> bool:
    """Return whether folders divide files by their numbers or hashes, and are no classes.

    ``01000/01023.png`` are the files from 1000 on; ``0007/2007.png`` those with the same end;
    ``0e/0e57a1c4.png`` those whose hash begins with 0e.
    """
    files = [(at, stem) for at, stems in folders.items() for stem in stems]
    mixed = [it for at, it in files if _MIXED.search(it[len(at) :])]  # numbers and words are not
    are_hashes = all(_HASH.fullmatch(it) and it.startswith(at) for at, it in files)
    if len(folders) > 1 and are_hashes and len(mixed) * 2 > len(files):
        return True
    names = [it for at, stems in sorted(folders.items()) for it in (at, *sorted(stems))]
    if len(folders) < 2 or len(names[0]) < 3 or not all(map(str.isdecimal, names)):
        return False
    ends = {at: at.lstrip("0") or "0" for at in folders}
    are_ends = all(it.endswith(ends[at]) for at, stems in folders.items() for it in stems)
    are_tens = all(at.endswith("0") for at in folders) and len({*map(len, names)}) == 1
    return are_ends or (are_tens and names == sorted(names))


def _hold_the_same(folders: Folders) -> bool:
    """Return whether folders hold the two or more parts of pairs, by their names or their files.

    Files have the same names, apart from words for parts, if each folder has more than half of the
    names of the second largest one, or one of them more than half of those of all others; numbers
    with zeros before them are names, too, but other numbers of classes are often the same:
    ``cats/7.jpg`` and ``dogs/7.jpg``, if not ``dogs/7.png``, or with the same gaps. Files of the
    same numbers are parts of pairs if the names around them differ by folder and are not the
    folder's (``pan/7_p.png``, ``ms/7_m.png``), and there are two or three folders, as more are
    classes; or if a folder is named after a part, for :data:`HALVES`.

    Args:
        folders: for each folder its files: their names without the suffix, and the suffix.
    """
    names = {*map(str.lower, folders)}
    are_same = len({*map(frozenset, folders.values())}) == 1
    has_halves = len(names & (ANNOTATIONS | HALVES)) > 1  # up, down, left and right are classes
    if len(folders) < 2 or names <= PAIRED or (are_same and has_halves):
        return len(folders) > 1
    shared = set.intersection(*map(set, folders.values()))
    are_texts = TEXTS.issuperset(chain.from_iterable(each.values() for each in folders.values()))
    named = [it for it in shared if not (it.isdecimal() if are_texts else _is_counted(it))]
    if len(named) > 1 and len(named) * 2 > sorted(map(len, folders.values()))[-2]:
        return True
    if _has_copies([*folders.values()]):
        return True
    numbers = [_numbers_in(stems) for stems in folders.values()]
    count = len(numbers[0]) if all(each == numbers[0] for each in numbers) else 0
    if len(folders) == 2 and not HALVES.isdisjoint(names):
        return count > 1
    one, other, *_ = folders.values()
    if len(folders) == 2 and one.keys() == other.keys() and len(one) > 2:
        steps = {after - at for at, after in pairwise(sorted(map(int, filter(str.isdecimal, one))))}
        return len(steps) > 1 or {*one.values()}.isdisjoint(other.values())
    if any(_repeats(folder, stems) for folder, stems in folders.items()):
        return False
    is_bare = all(map(str.isdecimal, chain.from_iterable(folders.values())))
    return count > 2 and len(folders) <= MOST_PARTS and not is_bare


def _has_copies(folders: Sequence[Mapping[str, str]]) -> bool:
    """Return whether one of several folders has most names of all others, such as thumbnails.

    Each of the others must have names of its own form, since classes are often numbered alike.
    """
    forms = [{_DIGITS.sub("#", stem) for stem in each} for each in folders]
    counts, times = Counter(chain.from_iterable(forms)), Counter(chain.from_iterable(folders))
    common = {form for form, count in counts.items() if count > 1}
    if len(folders) < 3 or max(counts.values()) > 2:
        return False
    return any(
        common <= own and sum(times[stem] for stem in each) * 2 > times.total() + len(each)
        for each, own in zip(folders, forms, strict=True)
    )


def _is_counted(stem: str) -> bool:
    """Return whether a name is a number without zeros before it, as files of classes often have."""
    return stem.isdecimal() and not stem[:-1].startswith("0")


def _numbers_in(stems: Collection[str]) -> Collection[str]:
    """Return the first numbers in names, if each is in one name of each form; none otherwise.

    Only names that begin with numbers may have several forms: ``7_10s.png, 7_30s.png``
    """
    numbers = {each[0] for stem in stems if (each := _DIGITS.search(stem))}
    forms = {_DIGITS.sub("#", stem, count=1) for stem in stems}
    is_whole = len(numbers) * len(forms) == len(stems)
    is_one = len(forms) == 1 or all(form.startswith("#") for form in forms)
    return numbers if is_whole and is_one else ()


def _repeats(folder: str, stems: Collection[str]) -> bool:
    """Return whether names of files have the name of their folder."""
    forms = {_DIGITS.sub("#", stem, count=1) for stem in stems}
    words = {word for form in forms for word in words_of(form) if len(word) > 2}
    is_own = any(word in folder.lower() or folder.lower() in word for word in words)
    return is_own or all(form.lower().startswith(folder.lower()) for form in forms)
