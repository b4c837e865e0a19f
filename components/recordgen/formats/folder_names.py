"""The names of folders and files: splits, classes, what is neither, and the likely layout.

train_images/1.jpg      →  split train, no label
images/cat/1.jpg        →  label cat
images/, masks/         →  ValueError: masks are no class

The folders at one depth have one role: all name splits, none says anything, or all are classes.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from difflib import SequenceMatcher
from functools import partial
from itertools import groupby, product
from typing import NamedTuple

from recordgen.core.dataset.manifest import SPLIT_PREFIX
from recordgen.core.dataset.splits import ML_USE_WORDS, is_ml_use, near_ml_use, parse_ml_use
from recordgen.errors import NotUnderstoodError
from recordgen.formats.field_kinds import have_words, known_words, words_by_kind, words_of
from recordgen.formats.listing import Listing, grouped
from recordgen.formats.split_names import names_several
from recordgen.tables.path_layout import PathLayout

#: Words for images in general, which no class has.
IMAGES = known_words("images")
_INSIDE_A_CLASS = IMAGES | known_words("suffixes_of_images")
_SURELY_NO_CLASS = _INSIDE_A_CLASS | known_words("no_classes")
# A class may have one of the other names, such as photos beside drawings.
_CONTAINERS = _SURELY_NO_CLASS | known_words("containers")

#: Words for images of the classes of pixels.
MASKS = known_words("masks")
#: Words for annotations as images. Only beside a folder of images are they no classes.
ANNOTATIONS = MASKS | known_words("annotations")
#: Words for one half of pairs without masks. A folder of such a name and one that holds the same
#: numbers are no classes; only left and right are sides of one, too.
HALVES = known_words("halves_of_pairs_of_files") - {"left", "right"}
#: Words for one half of pairs.
PAIRED = ANNOTATIONS | HALVES | {"left", "right"}

# Words for splits in other languages, which no layout knows.
_OTHER_SPLITS = known_words("splits_of_others")
# The name of a folder with a size, such as 256x256; a class may be named 4x4.
_SIZE = re.compile(r"(.*[\W_])?\d{2,}(x\d{2,}|px)", re.IGNORECASE)


_PERSON = re.compile("[1-9][0-9]{4,}")
_DATE = re.compile(r"(19|20)\d\d[-_][01]\d[-_][0-3]\d")


def may_be_class(folder: str) -> bool:
    """Return whether the name of a folder may be that of a class, and no split, mask or size.

    Long numbers are those of persons, if they do not begin with zeros.
    """
    if folder.lower() in _OTHER_SPLITS or _PERSON.fullmatch(folder):
        return False
    is_general = _SURELY_NO_CLASS.issuperset(_words(folder) or {folder}) or _SIZE.fullmatch(folder)
    return PAIRED.isdisjoint(words_of(folder)) and not is_general and _split_name(folder) is None


class PlacedFile(NamedTuple):
    """A file, and what its folders say: its split and its class, None where they say none."""

    name: str
    split: str | None
    label: str | None


def placed(names: Sequence[str]) -> tuple[list[PlacedFile], dict[str, str]]:
    """Return files in order, each with its split and its class, and the roles of folders.

    A folder that is no class has a role: ``{"train_images": "split train"}``.

    Raises:
        ValueError: folders at one depth are neither all splits nor all classes; or folders are
            below a class.
    """
    folder_of = {name: name.rpartition("/")[0] for name in sorted(names)}
    paths = {folder: _path(folder) for folder in set(folder_of.values())}
    splits: dict[str, str | None] = {}
    labels: dict[str, str] = {}
    roles: dict[str, str] = {}
    for depth in range(max(map(len, paths.values()), default=0)):
        deep = {folder: path for folder, path in sorted(paths.items()) if len(path) > depth}
        beside = sorted({path[depth] for path in deep.values()})
        if labels:
            _check_inside(deep, depth, {*labels.values()})
        elif named := _splits_of(beside):
            for folder, path in deep.items():
                split = named[path[depth]]
                if splits.setdefault(folder, split) != split:
                    raise ValueError(f"{folder} is in folders of two splits")
                roles["/".join(path[: depth + 1])] = f"split {split}" if split else "no split"
        elif _are_containers(beside, deep.values(), depth):
            roles |= {"/".join(path[: depth + 1]): "no label" for path in deep.values()}
        else:
            labels = {folder: path[depth] for folder, path in deep.items()}
    files = [PlacedFile(name, splits.get(at), labels.get(at)) for name, at in folder_of.items()]
    return files, roles


def _path(folder: str) -> Sequence[str]:
    """Return the names of nested folders; packed files often unpack into one of their own name."""
    return [each for each, _ in groupby(folder.split("/"))] if folder else []


def _check_inside(paths: Mapping[str, Sequence[str]], depth: int, labels: Set[str]) -> None:
    """Check that folders below those of classes hold images in general. Raises: ValueError."""
    for folder, path in paths.items():
        words = _words(path[depth])
        if not words or words - _INSIDE_A_CLASS:
            hint = f"; pass {folder[: -len(path[-1])]} if its folders are classes"
            what = f"{folder} is too deep for a class, and may hold one of several masks"
            raise ValueError(what + hint * (len(labels) == 1))


class _SplitName(NamedTuple):
    """The split that one word of a folder's name means, and its other words without numbers."""

    split: str | None
    others: frozenset[str]


def _split_name(folder: str) -> _SplitName | None:
    """Return what a name says about a split; None if none or several of its words mean one.

    ``train_images``, ``train2017``, ``Split-train`` → train.
    """
    bare = folder.removeprefix(SPLIT_PREFIX)
    words = [word for word in words_of(bare) if is_ml_use(word)]
    return _SplitName(parse_ml_use(words[0]), _words(bare) - {*words}) if len(words) == 1 else None


def _words(folder: str) -> frozenset[str]:
    """Return the words of a name without numbers."""
    return frozenset(word for word in words_of(folder) if not word.isdecimal())


def _splits_of(folders: Sequence[str]) -> Mapping[str, str | None]:
    """Return the split of each folder; empty if none names one.

    A name that says more than a split, such as ``seg_train``, needs another one, ``seg_test``.

    Raises: ValueError: only some of the folders name splits.
    """
    if len(folders) > 1 and _OTHER_SPLITS.issuperset(map(str.lower, folders)):
        raise ValueError(
            f"{' and '.join(folders)} may be splits; name them train, validation, test"
        )
    said = {folder: name for folder in folders if (name := _split_name(folder)) is not None}
    by_others = grouped(said, lambda folder: said[folder].others)
    several = {at for at, some in by_others.items() if len({said[it].split for it in some}) > 1}
    plain = [folder for folder, name in said.items() if name.others <= _CONTAINERS]
    named = plain or [folder for folder, name in said.items() if name.others in several]
    if named and (len(named) < len(folders) or not (plain or len(by_others) == 1)):
        other = next((folder for folder in folders if folder not in named), named[-1])
        meant = near_ml_use(other)
        hint = f" (did you mean {meant.lower()}?)" if meant else ""
        raise ValueError(f"{named[0]!r} is the name of a split and {other!r} is not{hint}")
    if not named and len(said) == len(folders) > 1:
        raise ValueError(f"{' and '.join(folders[:2])} hold names of splits, and are no classes")
    return {folder: said[folder].split for folder in named}


def _are_containers(folders: Sequence[str], paths: Iterable[Sequence[str]], depth: int) -> bool:
    """Return whether folders side by side hold images in general, not classes.

    Raises: ValueError: one of several folders cannot be a class.
    """
    words = {folder: _words(folder) for folder in folders}
    general = [folder for folder in folders if words[folder] and words[folder] <= _CONTAINERS]
    if len(folders) == 1:
        inner = {tuple(path[depth + 1 :]) for path in paths}
        return bool(general) or (len(inner) > 1 and () not in inner)
    if all(map(_SIZE.fullmatch, folders)):
        raise ValueError(f"{' and '.join(folders[:2])} are sizes, and no classes")
    are_parts = have_words("parts", words[folders[0]]) or all(map(_DATE.fullmatch, folders))
    if len({*words.values()}) == 1 and (general or are_parts):
        return True  # images_001, images_002; 2019-05-01, 2019-05-02
    others = [folder for folder in folders if folder not in general]
    are_masks = bool(others) and not any(map(ANNOTATIONS.isdisjoint, map(words_of, others)))
    for folder in general:
        if are_masks or words[folder] & _SURELY_NO_CLASS:
            beside = next(each for each in folders if each != folder)
            raise ValueError(f"{folder!r} and {beside!r} are side by side, {folder!r} is no class")
    return False


_LINES = 8
_SUFFIXES = 3


def shown_files(names: Sequence[str]) -> str:
    """Return the folders of files with the number of files of each suffix, in a few lines.

    ``train/cat/  120 .jpg, 1 .txt``
    """
    depth = max((name.count("/") for name in names), default=0)
    while len(folders := grouped(names, partial(_outer, depth=depth))) > _LINES:
        depth -= 1
    lines = []
    for folder in sorted(folders):
        counts = Counter(posixpath.splitext(name)[1] for name in folders[folder])
        most = counts.most_common(_SUFFIXES)
        shown = (f"{count:,} {suffix or 'without suffix'}" for suffix, count in most)
        lines.append(f"  {folder or './'}  {', '.join(shown)}")
    return "\n".join(lines)


def _outer(name: str, depth: int) -> str:
    """Return the outer folders of a file, with a slash at their end."""
    return "".join(f"{folder}/" for folder in name.split("/")[:-1][:depth])


# Words in the path of a mask. They only choose between two patterns that both fit all files.
_MASKS = re.compile("|".join(words_by_kind()["signs_of_masks"]), re.I)
_WORDS = "|".join(sorted(ML_USE_WORDS, key=len, reverse=True))
_SPLIT = re.compile(rf"(?<![^\W\d_])(?:{_WORDS})(?!{_WORDS})", re.I)
#: Words in the path of pictures of numbers or colours, which are no masks of classes.
NO_MASKS = re.compile("|".join(words_by_kind()["signs_of_other_pictures"]), re.I)
# Formats of masks that are not read: they change or renumber pixels.
_UNREAD = (".jpg", ".jpeg", ".gif")

# Names of files that are a label and a number, and their layouts.
_NUMBERED = {re.compile(it): said for it, said in words_by_kind()["labels_in_names"].items()}

_NUMBER = re.compile(r"\d+")
# A word of a name, a number, or what is between them.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^A-Za-z\d]")

_FILES_TRIED = 2_000
_GROUPS_TRIED = 12
# A number that counts, perhaps behind a word, or a sample: person01, sample_b.
_COUNTED = re.compile(r"(?:.*\D)?\d{1,4}|sample[\W_][A-Za-z]", re.IGNORECASE)
_FEW_DIGITS = re.compile(r"(?<!\d)\d{1,4}(?!\d)")
# So few folders may have a file each by chance.
_FEW_FOLDERS = 4


def layout_of_pairs(images: Sequence[str], documents: Sequence[str] = ()) -> str:
    """Return a layout in which each image has its mask, or the document that describes it.

    It is empty if no layout pairs nearly all.

    ``train/1.jpg, val/2.jpg, trainannot/1.png, valannot/2.png``
    →  ``{split}/{name}.jpg {split}annot/{name}.png``
    """
    firsts, seconds = _first_of_each_folder(images), _first_of_each_folder(documents)
    tried = [*firsts, *seconds]
    layouts = _pair_layouts(firsts, seconds or firsts)
    if not documents:
        layouts = (it for it in layouts if _told_masks(it) > 0 and not NO_MASKS.search(it))
    ranks = {it: (_pairs_in(it, tried), _told_masks(it)) for it in dict.fromkeys(layouts)}
    best = max(ranks, key=lambda it: (*ranks[it], "{split}" in it, -len(it)), default="")
    rivals = [it for it in ranks if ranks[it] == ranks[best] and it.split()[0] == best.split()[0]]
    count = sum(not NO_MASKS.search(name) for name in tried)
    return best if len(rivals) == 1 and ranks[best][0] * 5 > count else ""


def _first_of_each_folder(names: Sequence[str]) -> Sequence[str]:
    """Return some names: those that belong together are the first ones of their folders."""
    folders = grouped(names, posixpath.dirname)
    most = 8 + _FILES_TRIED // max(1, len(folders))
    return [name for some in folders.values() for name in some[:most]]


def _told_masks(layout: str) -> int:
    """Return how many words tell the masks in a layout, less those that tell its images as such."""
    first, second = layout.split(" ")
    return len(_MASKS.findall(second)) - len(_MASKS.findall(first))


def refusal(
    listing: Listing, reason: str, layout: str = "", source: str = "", image_root: str = ""
) -> NotUnderstoodError:
    """Return the error about a folder, which shows its files and how they are likely to be read.

    Masks whose format is not read are said, and no layout is proposed for them.
    """
    _, _, second = layout.partition(" ")
    if second.lower().endswith(_UNREAD):
        kind = posixpath.splitext(second)[1][1:].upper().replace("JPG", "JPEG")
        reason = f"{reason}; masks are not read as {kind}, so save {second} as PNG"
        layout = ""
    if source and listing.archive is not None:
        reason = f"{reason}; unpack the archive, and pass such a file"
        source = image_root = ""
    options = {"layout": layout, "image_root": image_root}
    return NotUnderstoodError(
        f"{listing.root}: {reason}",
        shown=shown_files(listing.names),
        options={name: value for name, value in options.items() if value},
        source=source,
    )


def _pairs_in(layout: str, names: Sequence[str]) -> int:
    """Return how many files have a second file in a layout; 0 if it does not suit."""
    try:
        matches = PathLayout.of(layout).matches(names)
    except ValueError:
        return 0
    paired = [file for file in matches.files if file.others]
    masks = {mask for file in paired for mask in file.others}
    folders = {posixpath.dirname(mask) for mask in masks}
    images = {_within(file.path) for file in paired}
    others = [name for name in matches.unused if not NO_MASKS.search(name)]
    more = sum(posixpath.dirname(name) in folders for name in others)
    alike = sum(_within(name) in images and not _MASKS.search(name) for name in others)
    if layout.lower().endswith(_UNREAD):
        alike = 0  # the refusal names what is not read, and proposes nothing
    if max(more, alike) * 2 > len(paired):
        return 0  # an image has more masks, or a mask more images
    is_one = len(masks) == len(paired) == sum(len(file.others) for file in paired)
    return len(paired) if is_one and len(paired) * 2 >= len(matches.files) else 0


def _within(name: str) -> tuple[str, str]:
    """Return the name of a file, and the folder that its folder is in."""
    return posixpath.dirname(posixpath.dirname(name)), posixpath.basename(name)


def _pair_layouts(firsts: Sequence[str], seconds: Sequence[str]) -> Iterator[str]:
    """Yield layouts made from the first files of two folders, or of one."""
    depth = max((name.count("/") for name in [*firsts, *seconds]), default=0)
    for level in (None, *range(depth)):
        pattern = partial(_pattern_of_folders, level=level)
        ones, others = grouped(firsts, pattern), grouped(seconds, pattern)
        if len(ones) > _GROUPS_TRIED or len(others) > _GROUPS_TRIED:
            continue
        for (one, names), (other, beside) in product(ones.items(), others.items()):
            if "{folder}" in other and "{folder}" not in one:
                continue  # any folder of masks, as without the word
            suffixes = _suffix(names, one == other), _suffix(beside, one == other)
            for name in names[:2]:
                yield from _of_two(one, name, other, beside, suffixes)


def _suffix(names: Sequence[str], is_same: bool) -> str:
    """Return the suffix of files as a pattern; empty for that of each in a folder of all files."""
    suffixes = {posixpath.splitext(name)[1] for name in names}
    return suffixes.pop() if len(suffixes) == 1 else "" if is_same else ".*"


def _of_two(
    one: str, first: str, other: str, seconds: Sequence[str], suffixes: tuple[str, str]
) -> Iterator[str]:
    """Yield the layout of a file and of each with whose name it has words in common."""
    stem, suffix = posixpath.splitext(posixpath.basename(first))
    words = _WORD.findall(stem)
    forms = {_NUMBER.sub("#", name): name for name in reversed(seconds)}
    for second in seconds[:3] if one != other else [*seconds[:8], *forms.values()][:16]:
        stem_2, suffix_2 = posixpath.splitext(posixpath.basename(second))
        alike = SequenceMatcher(None, words, _WORD.findall(stem_2), autojunk=False)
        at, _, count = alike.find_longest_match()
        shared = "".join(words[at : at + count]).rstrip("_-. ")
        if shared or "{folder}" in one:
            is_part = shared.isdigit() and one != other and stem != stem_2
            name = "{name:digits}" if is_part else "{name}" if shared else ""
            pattern = f"{one}{stem.replace(shared, name, 1)}{suffixes[0] or suffix}"
            pattern_2 = f"{other}{stem_2.replace(shared, name, 1)}{suffixes[1] or suffix_2}"
            yield f"{pattern.replace(' ', '*')} {pattern_2.replace(' ', '*')}"


def _pattern_of_folders(name: str, level: int | None) -> str:
    """Return the folders of a file with ``{split}`` for words of splits.

    ``level``: the folder that may have any name, counted from 0; inner ones may repeat it.
    """
    folders = [*map(_with_split, name.split("/")[:-1])]
    if level is not None and level < len(folders):
        any_name = re.compile(rf"(?<![^\W_]){re.escape(folders[level])}(?![^\W_])")
        folders[level:] = [any_name.sub("{folder}", it) for it in folders[level:]]
    return "".join(f"{folder}/" for folder in folders)


def _with_split(folder: str) -> str:
    """Return the name of a folder with ``{split}`` for a word of splits that no letter precedes.

    ``train_val2018`` names two, and so none.
    """
    return folder if names_several(folder) else _SPLIT.sub("{split}", folder, count=1)


def layout_of_classes(names: Sequence[str]) -> str:
    """Return a layout in which the last folders that differ are labels, beside those of splits.

    It describes the files at the depth of most, and is empty if no folders may be classes.

    ``20news-bydate-train/sci.space/1, 20news-bydate-test/alt.atheism/2``
    →  ``20news-bydate-{split}/{label}/{name}``
    """
    suffixes = {posixpath.splitext(name)[1] for name in names}
    suffix = suffixes.pop() if len(suffixes) == 1 else ""
    paths = [name.split("/")[:-1] for name in names]
    [(depth, count)] = Counter(map(len, paths)).most_common(1) or [(0, 0)]
    beside = {folder for path in paths if len(path) != depth for folder in path}
    has_masks = any(not MASKS.isdisjoint(words_of(folder)) for folder in beside)
    if has_masks or count * 3 <= len(names) * 2:
        return ""
    deepest = [path for path in paths if len(path) == depth]
    levels = [{*folders} for folders in zip(*deepest, strict=True)]
    patterns = [{*map(_with_split, folders)} for folders in levels]
    differing = [at for at in range(depth) if len(patterns[at]) > 1]
    may_be_classes = all(may_be_class(it) for at in differing for it in levels[at])
    are_own = len({*map(tuple, deepest)}) > max(_FEW_FOLDERS, len(deepest) // 2)
    if not differing or are_own or not may_be_classes:
        return ""
    outer = Counter(tuple(path) for path in paths if differing[0] < len(path) < depth)
    if any(count > 1 for count in outer.values()):
        return ""  # classes of several depths: abbey/1.jpg, apse/indoor/1.jpg
    *others, last = differing
    while others:
        nested = {(path[others[-1]], path[last]) for path in deepest}
        if _are_numbered_classes(nested):
            return ""
        if not _are_parts(nested):
            break
        last = others.pop()
    forms = {_FEW_DIGITS.sub("#", it) for it in levels[last]}
    if len(forms) == 1 and "#" not in forms and "#" in "".join(forms):
        return ""  # parts, persons or scenes, rather than classes: fold_1, fold_2; 40X, 100X
    whole = (name for name in names if name.count("/") == depth)
    inside = grouped(whole, lambda name: name.split("/")[last])
    alike = {frozenset(it.split("/", last + 1)[-1] for it in some) for some in inside.values()}
    if last < depth - 1 and len(alike) == 1:
        return ""  # recordings: ants/color/0001.jpg, balls/color/0001.jpg
    stems = {posixpath.splitext(posixpath.basename(name))[0] for name in names}
    if len({*map(str.lower, suffixes)}) > 1 and len(stems) * 2 <= len(names):
        return ""  # pairs: room/1.jpg, room/1.png; clip/clip_1/a.jpg, matting/matting_1/a.png
    words = {**dict.fromkeys(differing, "*"), last: "{label}"}
    folders = [words.get(at) or patterns[at].pop() for at in range(depth)]
    return "/".join([*folders, f"{{name}}{suffix}"]).replace(" ", "*")


def layout_of_names(names: Set[str]) -> str:
    """Return a layout in which the names of files are labels with numbers; empty if they are not.

    ``train/cat.1.jpg, test/dog.7.jpg``  →  ``{split}/{label}.{n:digits}.jpg``
    """
    stems = {name: posixpath.splitext(posixpath.basename(name))[0] for name in names}
    for form, layout in _NUMBERED.items():
        found = {name: each for name, stem in stems.items() if (each := form.fullmatch(stem))}
        others = {*map(posixpath.dirname, names - found.keys())}  # of tests without labels
        folders = {_pattern_of_folders(name, None).replace(" ", "*") for name in found}
        labels, signs = ({each[word] for each in found.values()} for word in ("label", "sign"))
        is_whole = others.isdisjoint(map(posixpath.dirname, found)) and len(found) * 2 > len(names)
        is_whole &= len(signs) == len(folders) == 1
        if is_whole and 1 < len(labels) <= len(found) // 2 and all(map(may_be_class, labels)):
            return f"{folders.pop()}{layout.format(signs.pop())}{_suffix([*found], is_same=False)}"
    return ""


def _are_parts(folders: Set[tuple[str, str]]) -> bool:
    """Return whether inner folders are parts of outer ones, by their names, and no classes.

    ``apple/apple_a``, ``apple/v_apple_1``, but not ``cat/wild cat``; or counted alike,
    ``chair/1, table/1`` and ``run/person01, walk/person01``, but not ``sketch/cat, photo/cat``
    """
    words = [[f" {' '.join(words_of(name))} " for name in pair] for pair in folders]
    inner = {one for _, one in folders}
    are_numbered = all(one[-1].isdigit() for one in inner)
    are_own = all(outer in one if are_numbered else one.startswith(outer) for outer, one in words)
    return are_own or (len(inner) < len(folders) and all(map(_COUNTED.fullmatch, inner)))


def _are_numbered_classes(folders: Set[tuple[str, str]]) -> bool:
    """Return whether inner folders are numbered classes of outer ones, which no layout names.

    ``Greek/character01, Latin/character01`` differ; ``Aves/2001, Fungi/2007`` have own numbers.
    """
    inner = {one for _, one in folders}
    are_own = len(inner) == len(folders) and all(map(str.isdecimal, inner))
    numbered = [one for one in inner if have_words("numbered_classes", words_of(one))]
    return are_own or (len(numbered) == len(inner) and all(one[-1].isdigit() for one in inner))
