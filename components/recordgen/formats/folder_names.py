"""The names of folders and files in a folder of images: splits, classes, and what is neither.

train_images/1.jpg    →  split train, no label
images/cat/1.jpg      →  label cat
images/, masks/       →  NotUnderstoodError: masks are no class
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from recordgen.core.dataset.manifest import SPLIT_PREFIX
from recordgen.core.dataset.splits import is_ml_use, near_ml_use, parse_ml_use
from recordgen.errors import NotUnderstoodError
from recordgen.formats.field_kinds import words_of
from recordgen.formats.folder_advice import layout_of_pairs, refusal

# Words for images in general, which no class has.
_IMAGES = frozenset({"images", "image", "imgs", "img", "jpegimages", "imagefolder"})
_FORMATS = frozenset({"jpg", "jpgs", "jpeg", "jpegs", "png", "pngs", "bmp", "gif", "tif", "webp"})
_STAGES = frozenset(
    {"data", "dataset", "datasets", "raw", "processed", "resized", "original", "originals"}
)
# A class may have one of these names, such as photos beside drawings.
_MAYBE_A_CLASS = frozenset(
    {"photos", "photo", "pictures", "picture", "pics", "frames", "files", "input", "inputs", "all"}
)
_SURELY_NO_CLASS = _IMAGES | _FORMATS | _STAGES
_CONTAINERS = _SURELY_NO_CLASS | _MAYBE_A_CLASS | {"set"}

# Words for annotations as images. Only beside a folder of images are they no classes.
ANNOTATIONS = frozenset(
    {"mask", "masks", "label", "labels", "annotation", "annotations", "groundtruth", "gt"}
    | {"segmentation", "segmentations", "segmentationclass", "segmentationobject"}
    | {"trimaps", "depth", "depths", "truth"}
)

# Names of masks: "benign (1)_mask_1". The first group is the name of the image.
_MASK_NAME = re.compile(
    r"(.+)[ _-](?:mask|seg|segmentation|gt|groundtruth)(?:[ _-]?\d+)?", re.I | re.S
)

# Files that operating systems, editors and authors leave beside images.
_NO_IMAGE_NAMES = frozenset(
    {"thumbs.db", "ehthumbs.db", "desktop.ini", "folder.htt", "icon\r", "makefile"}
    | {"readme", "license", "licence", "copying", "notice", "authors", "changelog", "citation"}
    | {"manifest", "checksums", "md5sums", "sha256sums"}
)
_NO_IMAGE_SUFFIXES = frozenset(
    {".txt", ".md", ".rst", ".xml", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".yaml", ".yml"}
    | {".ini", ".cfg", ".toml", ".db", ".html", ".htm", ".css", ".js", ".py", ".pyc", ".ipynb"}
    | {".log", ".url", ".webloc", ".lnk", ".sh", ".bat", ".md5", ".sha256", ".bib", ".tex"}
    | {".pkl", ".pickle", ".ckpt", ".pt", ".pth", ".h5", ".keras", ".onnx", ".tmp", ".bak"}
)
_NO_IMAGE_FOLDERS = frozenset(
    {"__macosx", "@eadir", "$recycle.bin", "system volume information", "lost+found"}
    | {"__pycache__", "checkpoints", "ipynb_checkpoints"}
)


def is_no_image(name: str) -> bool:
    """Return whether the name of a file shows that it is no image: ``Thumbs.db``, ``README.md``.

    False if the file may be an image, such as one without a suffix.
    """
    base = posixpath.basename(name).lower()
    stem, suffix = posixpath.splitext(base)
    return base in _NO_IMAGE_NAMES or suffix in _NO_IMAGE_SUFFIXES or stem == "._"


def holds_no_images(folder: str) -> bool:
    """Return whether programs keep files of their own in a folder of this name: ``__MACOSX``."""
    return folder.lower() in _NO_IMAGE_FOLDERS


class Placed(NamedTuple):
    """A file, and what its folders say.

    Attributes:
        name: its path below the source.
        labels: the folders that are neither splits nor containers; usually its class.
    """

    name: str
    split: str | None
    labels: Sequence[str]


class _Meaning(NamedTuple):
    """What the name of a folder says.

    Attributes:
        has_split: whether it names a split, or "unassigned".
        split: the split that it names.
        kind: the other words, without numbers, if all are ``images``-like words; else None.
    """

    has_split: bool
    split: str | None
    kind: frozenset[str] | None


def _meaning(name: str) -> _Meaning:
    """Return what the name of a folder says.

    ``train_images``, ``train2017``, ``Split-train`` → split train; ``images_001`` → images;
    ``train_station`` → neither.
    """
    bare = name.removeprefix(SPLIT_PREFIX)
    if bare and is_ml_use(bare):
        return _Meaning(True, parse_ml_use(bare), frozenset())
    words = words_of(bare)
    splits = [word for word in words if is_ml_use(word)]
    others = frozenset(word for word in words if not is_ml_use(word) and not word.isdecimal())
    if len(splits) > 1 or not others <= _CONTAINERS or not (splits or others):
        return _Meaning(False, None, None)
    split = parse_ml_use(splits[0]) if splits else None
    return _Meaning(bool(splits), split, others)


def _split_and_rest(name: str) -> tuple[str | None, Sequence[str]] | None:
    """Return the split that one word of a name means, and the other words; None without one."""
    words = words_of(name)
    splits = [word for word in words if is_ml_use(word)]
    if len(splits) != 1:
        return None
    return parse_ml_use(splits[0]), tuple(word for word in words if word not in splits)


class Folders:
    """Reads splits and labels from the folders of files.

    Attributes:
        roles: what was understood about folders that are no classes: ``split train``, ``no label``.
    """

    def __init__(self, folder: str) -> None:
        """Args: folder: the source, with ``/`` at its end, for messages."""
        self._folder = folder
        self.roles: dict[str, str] = {}

    def place(self, names: Sequence[str]) -> list[Placed]:
        """Return files in order, each with its split and its label.

        Args:
            names: paths of files below the source.

        Raises:
            NotUnderstoodError: folders are neither splits nor classes; or only some are splits; or
                masks are beside their images.
        """
        if (mask := _mask_beside(names)) is not None:
            raise self._refusal(names, f"{mask}: the name is that of a mask of the image beside it")
        return sorted(self._placed(names, "", None, is_in_split=False))

    def _placed(
        self, names: Sequence[str], above: str, split: str | None, *, is_in_split: bool
    ) -> Iterator[Placed]:
        """Yield the files below the folder ``above``, which is a split or the whole source."""
        by_top: dict[str, list[str]] = {}
        for name in names:
            top, slash, _ = name[len(above) :].partition("/")
            if slash:
                by_top.setdefault(top, []).append(name)
            else:
                yield Placed(name, split, ())
        tops = {top: _meaning(top) for top in sorted(by_top)}
        tops |= self._by_one_word(tops, above, names)
        named = [top for top, said in tops.items() if said.has_split]
        if named:
            self._check_all(named, tops, above, names)
            if is_in_split and (len(named) > 1 or tops[named[0]].split != split):
                raise self._refusal(
                    names, f"{above}: {named[0]!r} is a split, and is in a folder of {split!r}"
                )
        elif not self._are_containers(tops, above, names):
            for name in chain.from_iterable(by_top.values()):
                yield Placed(name, split, _labels(name[len(above) :].split("/")[:-1]))
            return
        for top, inside in by_top.items():
            said = tops[top]
            role = f"split {said.split}" if said.split else "no split"
            self.roles[f"{above}{top}"] = role if named else "no label"
            yield from self._placed(
                inside,
                f"{above}{top}/",
                said.split if named else split,
                is_in_split=is_in_split or bool(named),
            )

    def _refusal(self, names: Sequence[str], reason: str) -> NotUnderstoodError:
        """Return the error about folders that are neither splits nor classes."""
        pairs = layout_of_pairs(names)
        found = f"{reason}; these are masks and their images" if pairs else reason
        return refusal(self._folder, names, found, pairs)

    def _by_one_word(
        self, tops: Mapping[str, _Meaning], above: str, names: Sequence[str]
    ) -> Mapping[str, _Meaning]:
        """Return splits among names that differ only by it: ``seg_train`` and ``seg_test``.

        Raises: NotUnderstoodError: other folders are beside them.
        """
        found = {top: _split_and_rest(top) for top in tops}
        splits: dict[Sequence[str], set[str | None]] = {}
        for split, rest in filter(None, found.values()):
            splits.setdefault(rest, set()).add(split)
        several = [rest for rest, some in splits.items() if len(some) > 1 and rest]
        pairs = [top for top, said in found.items() if said and said[1] in several]
        if not pairs or all(tops[top].has_split for top in pairs):
            return {}
        others = [top for top in tops if top not in pairs]
        if len(several) > 1 or others:
            raise self._refusal(
                names,
                f"{above}: {pairs[0]!r} and {pairs[1]!r} name splits, and are beside "
                f"{next(iter(others), pairs[-1])!r}",
            )
        return {top: _Meaning(True, said[0], frozenset()) for top, said in found.items() if said}

    def _check_all(
        self, named: Sequence[str], tops: Mapping[str, _Meaning], above: str, names: Sequence[str]
    ) -> None:
        """Check that all folders beside a split are splits. Raises: NotUnderstoodError."""
        if others := [top for top in tops if top not in named]:
            meant = near_ml_use(others[0])
            hint = f" (did you mean {meant.lower()}?)" if meant else ""
            raise self._refusal(
                names,
                f"{above}: {named[0]!r} is the name of a split and {others[0]!r} is not{hint}",
            )

    def _are_containers(
        self, tops: Mapping[str, _Meaning], above: str, names: Sequence[str]
    ) -> bool:
        """Return whether folders side by side hold images in general, not classes.

        Raises: NotUnderstoodError: one of several folders cannot be a class.
        """
        kinds = {top: said.kind for top, said in tops.items() if said.kind is not None}
        # Packed files often unpack into a folder of their own name.
        is_again = bool(above) and [*tops] == [posixpath.basename(above[:-1])]
        if is_again or _is_alone(names, above) or len(kinds) == len(tops) == 1 or _are_parts(tops):
            return True
        others = [top for top in tops if top not in kinds]
        are_masks = bool(others) and all(map(ANNOTATIONS.intersection, map(words_of, others)))
        surely = [top for top, kind in kinds.items() if are_masks or kind & _SURELY_NO_CLASS]
        if not surely:
            return False
        if not others and len(set(kinds.values())) == 1:
            return True  # images_001, images_002
        first = surely[0]
        beside = next(top for top in tops if top != first)
        raise self._refusal(
            names, f"{above}: {first!r} and {beside!r} are side by side, and {first!r} is no class"
        )


def _is_alone(names: Sequence[str], above: str) -> bool:
    """Return whether files are in several folders below one, and none is directly in it."""
    folders = {tuple(name[len(above) :].split("/")[:-1]) for name in names}
    is_one = len({found[:1] for found in folders}) == 1
    return is_one and len(folders) > 1 and min(map(len, folders)) > 1


def _are_parts(tops: Iterable[str]) -> bool:
    """Return whether names say parts of one set: ``HAM10000_images_part_1``, ``…_part_2``."""
    words = [[word for word in words_of(top) if not word.isdecimal()] for top in tops]
    return len(words) > 1 and all(each == words[0] for each in words) and "part" in words[0]


def _mask_beside(names: Iterable[str]) -> str | None:
    """Return a file such as ``1_mask.png`` beside ``1.jpg``, or None."""
    stems = {name: posixpath.splitext(name)[0] for name in names}
    there = {*stems.values()}
    found = ((name, _MASK_NAME.fullmatch(stem)) for name, stem in stems.items())
    return next((name for name, mask in found if mask and mask[1] in there), None)


def _labels(folders: Sequence[str]) -> Sequence[str]:
    """Return folders from a class on, without containers inside the class: ``cat/images``."""
    label, *inside = folders
    kinds = (_meaning(name).kind for name in inside)
    are_needless = all(kind and kind <= _IMAGES | _FORMATS for kind in kinds)
    return [label] if are_needless else folders
