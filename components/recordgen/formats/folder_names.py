"""The names of folders and files: splits, classes, and what is neither.

train_images/1.jpg      →  split train, no label
images/cat/1.jpg        →  label cat
images/, masks/         →  ValueError: masks are no class

The folders at one depth have one role: all name splits, none says anything, or all are classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from recordgen.core.dataset.manifest import SPLIT_PREFIX
from recordgen.core.dataset.splits import is_ml_use, near_ml_use, parse_ml_use
from recordgen.formats.field_kinds import words_of

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
_INSIDE_A_CLASS = _IMAGES | _FORMATS

# Words for annotations as images. Only beside a folder of images are they no classes.
ANNOTATIONS = frozenset(
    {"mask", "masks", "label", "labels", "annotation", "annotations", "groundtruth", "gt"}
    | {"segmentation", "segmentations", "segmentationclass", "segmentationobject"}
    | {"trimaps", "depth", "depths", "truth"}
)

# Words for one half of pairs. Folders of these names are no classes if they hold the same numbers.
PAIRED = ANNOTATIONS | frozenset(
    {"rgb", "ir", "nir", "thermal", "left", "right", "hr", "lr", "sat", "map", "maps"}
    | {"input", "inputs", "output", "outputs", "source", "sources", "target", "targets"}
    | {"noisy", "clean", "hazy", "clear", "blur", "blurred", "sharp", "before", "after"}
    | {"query", "gallery", "articles", "summaries", "questions", "answers"}
)

_NO_IMAGE_FOLDERS = frozenset(
    {"__macosx", "@eadir", "$recycle.bin", "system volume information", "lost+found"}
    | {"__pycache__", "checkpoints", "ipynb_checkpoints"}
)


def holds_no_images(folder: str) -> bool:
    """Return whether programs keep files of their own in a folder of this name: ``__MACOSX``."""
    return folder.lower() in _NO_IMAGE_FOLDERS


def may_be_class(folder: str) -> bool:
    """Return whether the name of a folder may be that of a class, and no split, mask or pair."""
    return (PAIRED | _SURELY_NO_CLASS).isdisjoint(words_of(folder)) and _split_name(folder) is None


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
            _check_inside(deep, depth)
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
    files = [
        PlacedFile(name, splits.get(folder), labels.get(folder))
        for name, folder in folder_of.items()
    ]
    return files, roles


def _path(folder: str) -> Sequence[str]:
    """Return the names of nested folders; packed files often unpack into one of their own name."""
    return [each for each, _ in groupby(folder.split("/"))] if folder else []


def _check_inside(paths: Mapping[str, Sequence[str]], depth: int) -> None:
    """Check that folders below those of classes hold images in general. Raises: ValueError."""
    for folder, path in paths.items():
        words = _words(path[depth])
        if not words or words - _INSIDE_A_CLASS:
            raise ValueError(
                f"{folder} is too deep for a folder of a class, and may hold one of several masks"
            )


class _SplitName(NamedTuple):
    """The split that one word of a folder's name means, and its other words without numbers."""

    split: str | None
    others: frozenset[str]


def _split_name(folder: str) -> _SplitName | None:
    """Return what a name says about a split; None if none or several of its words mean one.

    ``train_images``, ``train2017``, ``Split-train`` → train.
    """
    bare = folder.removeprefix(SPLIT_PREFIX)
    if bare and is_ml_use(bare):
        return _SplitName(parse_ml_use(bare), frozenset())
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
    said = {folder: name for folder in folders if (name := _split_name(folder)) is not None}
    by_others: dict[frozenset[str], set[str | None]] = {}
    for split, others in said.values():
        by_others.setdefault(others, set()).add(split)
    plain = [folder for folder, name in said.items() if name.others <= _CONTAINERS]
    named = plain or [folder for folder, name in said.items() if len(by_others[name.others]) > 1]
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
    if len({*words.values()}) == 1 and (general or "part" in words[folders[0]]):
        return True  # images_001, images_002
    others = [folder for folder in folders if folder not in general]
    are_masks = bool(others) and not any(map(ANNOTATIONS.isdisjoint, map(words_of, others)))
    wrong = [folder for folder in general if are_masks or words[folder] & _SURELY_NO_CLASS]
    if wrong:
        beside = next(folder for folder in folders if folder != wrong[0])
        raise ValueError(
            f"{wrong[0]!r} and {beside!r} are side by side, and {wrong[0]!r} is no class"
        )
    return False
