"""What data.yaml, or a file with the names of classes, says about YOLO labels."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from recordgen.core.limits import KEYPOINTS, YAML_LEVELS
from recordgen.errors import SourceError
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.formats.json_values import json_value
from recordgen.formats.listing import HEAD_BYTES, Listing
from recordgen.subjects.details import KEYPOINT

_Lists: TypeAlias = Mapping[str, Sequence[str]]

#: Folders of images whose labels are in the twin folder ``labels``, as Darknet reads them.
IMAGE_FOLDERS = ("images", "JPEGImages")

#: Suffixes of documents with a line for each image, below one for the data set.
LINES = (".ndjson", ".jsonl")

CLASS_FILES = ("classes.txt", "obj.names", "_darknet.labels")

# The keys of splits, with the names that each may have.
_SPLITS = {"train": ("train",), "val": ("val", "validation", "valid"), "test": ("test",)}


def is_class_file(name: str) -> bool:
    """Return whether a file has the name of one that names classes, a line for each."""
    return posixpath.basename(name) in CLASS_FILES


@dataclass(frozen=True)
class YoloConfig:
    """What data.yaml, or a file with the names of classes, says.

    Attributes:
        folder: its folder, relative to the root.
        classes: the names of the classes by number.
        splits: for each split, the folders or lists of images as written; None if there are none.
        root: the value of ``path``.
        keypoints: the count of numbers of keypoints behind each box.
        per_keypoint: numbers of each keypoint: 2, or 3 with its visibility.
        names: of the keypoints.
        flip: for each keypoint, the one that it becomes in a mirrored image; empty if unknown.
    """

    where: str
    folder: str
    classes: Sequence[str]
    splits: Mapping[str, Sequence[str]] | None = None
    root: str = ""
    keypoints: int = 0
    per_keypoint: int = KEYPOINT
    names: Sequence[str] = ()
    flip: Sequence[int] = ()


def configs_in(listing: Listing) -> list[str]:
    """Return the YAML files that say the names of classes, and where images are."""
    found = []
    for name in listing.candidates(".yaml", ".yml"):
        with suppress(NotYamlError):
            found += [name] if _is_config(read_yaml(listing, name)) else []
    return found


class NotYamlError(SourceError):
    """A file cannot be read as YAML."""


def read_yaml(listing: Listing, name: str) -> Any:
    """Return the content of a YAML file. Raises: NotYamlError, SourceError."""
    head = listing.head(name)
    try:
        if len(head) >= HEAD_BYTES:
            raise ValueError(f"more than {HEAD_BYTES >> 10} KiB")
        check_yaml(head)
        found = yaml.safe_load(head)
        repr(found)  # a number may have more digits than Python shows, which is a ValueError
        if isinstance(found, dict) and "names" in found:
            # The classes yes, no and 010 are texts, and no truth values or octal numbers.
            found["names"] = yaml.load(head, yaml.BaseLoader).get("names")
    except (yaml.YAMLError, ValueError) as exc:
        raise NotYamlError(f"{listing.root}{name}: cannot be read as YAML: {exc}") from exc
    return found


def check_yaml(data: bytes) -> None:
    """Check that YAML stays small when it is loaded. Raises: ValueError, yaml.YAMLError."""
    depth = 0
    for event in yaml.parse(data, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("it has aliases")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        YAML_LEVELS.check(depth)


def _is_config(found: Any) -> bool:
    if not isinstance(found, dict) or "names" not in found:
        return False
    return not {"nc", "path", *(key for keys in _SPLITS.values() for key in keys)}.isdisjoint(found)


def has_dataset_line(listing: Listing, name: str) -> bool:
    """Return whether the first line of a document describes a data set of Ultralytics."""
    return _dataset_line(listing, name).get("type") == "dataset"


def _dataset_line(listing: Listing, name: str) -> Mapping[str, Any]:
    """Return the first line of a document, with the classes as data.yaml has them, or nothing."""
    first, *_ = listing.head(name).split(b"\n", 1)
    if b'"class_names"' not in first:
        return {}
    try:
        found = json_value(first)
    except ValueError:
        return {}
    return {**found, "names": found.get("class_names")} if isinstance(found, dict) else {}


def read_config(listing: Listing, name: str) -> YoloConfig:
    """Return what the file with the classes says. Raises: SourceError."""
    where, folder = f"{listing.root}{name}", posixpath.dirname(name)
    are_lines = name.lower().endswith(LINES)
    try:
        if is_class_file(name):
            classes = _class_names(_lines(listing, name))
            named_by, lists = _darknet_lists(listing, name)
            return YoloConfig(f"{listing.root}{named_by}", folder, classes, lists)
        found = _dataset_line(listing, name) if are_lines else read_yaml(listing, name)
        config = _declared(where, folder, found)
        if not (config.splits or are_lines):
            raise ValueError("no split is named; expected train: and val:, with paths")
    except ValueError as exc:
        raise SourceError(f"{where}: {exc}") from None
    return config


def _declared(where: str, folder: str, found: Mapping[str, Any]) -> YoloConfig:
    """Return what the keys of data.yaml say. Raises: ValueError: one has no value of its kind."""
    classes = _class_names(found["names"])
    if isinstance(count := found.get("nc"), int) and count != len(classes):
        raise ValueError(f"nc is {count}, but there are {len(classes)} names; correct one")
    shape = found.get("kpt_shape") or (0, 0)
    is_shape = isinstance(shape, list | tuple) and len(shape) == 2 and shape[1] in (0, 2, 3)
    if not (is_shape and all(isinstance(side, int) and side >= 0 for side in shape)):
        raise ValueError(
            f"kpt_shape must be the number of keypoints, and 2 or 3 (got {shape!r:.40})"
        )
    KEYPOINTS.check(shape[0], "kpt_shape")
    splits = {}
    for split, keys in _SPLITS.items():
        value = next((found[key] for key in keys if found.get(key)), ())
        values = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(item, str) for item in values):
            raise ValueError(f"{split} must be a path or a list of them (got {value!r:.40})")
        if values:
            splits[split] = values
    root = found.get("path") or ""
    count, per_keypoint = shape
    return YoloConfig(
        *(where, folder, classes, splits, str(root), count * per_keypoint, per_keypoint),
        _keypoint_names(found.get("kpt_names"), count),
        _flip(found.get("flip_idx"), count),
    )


def of_one_set(listing: Listing, names: Sequence[str]) -> list[str]:
    """Return the files of one data set: one, or one in each folder of a split with equal classes.

    Raises: SourceError: several are configurations, or differ.
    """
    by_folder = {posixpath.dirname(name): name for name in reversed(names)}
    are_lists = all(map(is_class_file, names))
    if len(names) > 1 and not (
        are_lists and len({tuple(read_config(listing, name).classes) for name in names}) == 1
    ):
        raise SourceError(
            f"{listing.root}: several files name classes, and may differ "
            f"({', '.join(names[:5])}); pass the one to use"
        )
    # Files above one another are about the same images.
    inner = {one for one in by_folder for other in by_folder if one != other and _is_in(one, other)}
    return sorted(name for folder, name in by_folder.items() if folder not in inner)


def _is_in(folder: str, other: str) -> bool:
    return not other or folder.startswith(f"{other}/")


def _lines(listing: Listing, name: str) -> list[str]:
    return listing.head(name).decode("utf-8-sig", "replace").rstrip().splitlines()


def _darknet_lists(listing: Listing, name: str) -> tuple[str, _Lists | None]:
    """Return the lists of the images of each split, and the file that names them.

    It is the ``obj.data`` that belongs to ``obj.names``, the file ``name``; or the lists are
    ``train.txt`` and ``valid.txt`` beside that one. None if there is only one, as CVAT and
    Yolo_mark write, or if none is here.
    """
    folder, base = posixpath.split(name)
    keys = [key for keys in _SPLITS.values() for key in keys]
    said = {key: f"{key}.txt" for key in keys if _is_list(listing, folder, f"{key}.txt")}
    for other in (each for each in listing.others if each.endswith(".data")):
        pairs = (line.partition("=") for line in _lines(listing, other))
        found = {key.strip(): value.strip() for key, _, value in pairs}
        if posixpath.basename(found.get("names", "")) == base:
            name, said = other, found
    lists = {split: [said[key] for key in keys if key in said] for split, keys in _SPLITS.items()}
    lists = {split: found[:1] for split, found in lists.items() if found}
    there = {*map(posixpath.basename, listing.others)}
    paths = {path for [path] in lists.values()}
    is_here = not there.isdisjoint(map(posixpath.basename, paths))
    return (name, lists) if is_here and len(paths) > 1 else (name, None)


def _is_list(listing: Listing, folder: str, name: str) -> bool:
    """Return whether a file is there, and begins with the path of an image."""
    path = posixpath.join(folder, name)
    first = next(iter(_lines(listing, path)), "") if path in listing else ""
    return IMAGE_SUFFIX.search(first.strip()) is not None


def _keypoint_names(names: Any, count: int) -> Sequence[str]:
    """Return the names of the keypoints: a list, or that of the first class, else their numbers."""
    found = next(iter(names.values()), None) if isinstance(names, dict) else names
    if isinstance(found, list) and len(found) == count:
        return list(map(str, found))
    return [str(number) for number in range(count)]


def _flip(flip: Any, count: int) -> Sequence[int]:
    """Return ``flip_idx``. Raises: ValueError: it does not number each keypoint once."""
    if not flip:
        return ()
    if not isinstance(flip, list) or sorted(map(str, flip)) != sorted(map(str, range(count))):
        raise ValueError(f"flip_idx must number {count} keypoints (got {flip!r:.80})")
    return flip


def _class_names(names: Any) -> Sequence[str]:
    """Return the names of classes by number: a list, or numbers with names. Raises: ValueError."""
    if isinstance(names, list) and names:
        return [str(name).strip() or str(at) for at, name in enumerate(names)]
    if isinstance(names, dict) and names:
        try:
            by_number = {int(number): str(name).strip() for number, name in names.items()}
        except (TypeError, ValueError):
            by_number = {-1: ""}
        if min(by_number) >= 0 and max(by_number) < 100_000:
            return [by_number.get(at, str(at)) for at in range(max(by_number) + 1)]
    raise ValueError("names must be a list of classes, or a name for each number")
