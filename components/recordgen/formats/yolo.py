"""YOLO: a text file of boxes for each image, and a data.yaml with classes and splits.

    data.yaml          names: [cat, dog], train: images/train, val: images/val
    images/train/a.jpg
    labels/train/a.txt 1 0.5 0.5 0.2 0.4

becomes the picture ``images/train/a.jpg`` of split train with a dog from (0.4, 0.3) to (0.6, 0.7),
in shares of the image. Rules: Ultralytics' "Object detection datasets overview". Also read are
Darknet's and Label Studio's folders, in which ``classes.txt``, ``obj.names`` or
``_darknet.labels`` names the classes, and ``obj.data`` or lists beside it the splits.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, permutations
from typing import Any, ClassVar, TypeAlias

import yaml

from recordgen.core.dataset.splits import word_in_folders
from recordgen.core.limits import FOLDERS, KEYPOINTS, YAML_LEVELS
from recordgen.errors import SourceError
from recordgen.formats import pictures
from recordgen.formats.dota import is_named
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.formats.folder_names import layout_of_pairs, refusal
from recordgen.formats.format import Evidence
from recordgen.formats.listing import HEAD_BYTES, Listing, grouped
from recordgen.formats.pictures import keypoints as known_keypoints
from recordgen.subjects.details import KEYPOINT, Details, Polygons, keypoints_of
from recordgen.subjects.picture import Marked, Picture
from recordgen.tasks import ImageSegmentation, ObjectDetection

_Lists: TypeAlias = Mapping[str, Sequence[str]]

#: Folders of images whose labels are in the twin folder ``labels``, as Darknet reads them.
IMAGE_FOLDERS = ("images", "JPEGImages")

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
    return [name for name in listing.candidates(".yaml", ".yml") if _is_config(listing, name)]


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


def _is_config(listing: Listing, name: str) -> bool:
    try:
        keys = read_yaml(listing, name)
    except NotYamlError:
        return False
    others = {"nc", "path", *chain.from_iterable(_SPLITS.values())}
    is_named = posixpath.splitext(posixpath.basename(name))[0].lower() in ("data", "dataset")
    return isinstance(keys, dict) and "names" in keys and (is_named or not others.isdisjoint(keys))


def read_config(listing: Listing, name: str) -> YoloConfig:
    """Return what the file with the classes says. Raises: SourceError."""
    where, folder = f"{listing.root}{name}", posixpath.dirname(name)
    try:
        if is_class_file(name):
            classes = _class_names(_lines(listing, name))
            named_by, lists = _darknet_lists(listing, name)
            return YoloConfig(f"{listing.root}{named_by}", folder, classes, lists)
        return _declared(where, folder, read_yaml(listing, name))
    except ValueError as exc:
        raise SourceError(f"{where}: {exc}") from None


def _declared(where: str, folder: str, found: Mapping[str, Any]) -> YoloConfig:
    """Return what the keys of data.yaml say. Raises: ValueError: one has no value of its kind."""
    classes = _class_names(found["names"])
    if isinstance(count := found.get("nc"), int) and count != len(classes):
        raise ValueError(f"nc is {count}, but there are {len(classes)} names; correct one")
    shape = found.get("kpt_shape") or (0, 0)
    is_shape = isinstance(shape, list | tuple) and len(shape) == 2 and shape[1] in (0, 2, 3)
    if not (is_shape and all(isinstance(side, int) and side >= 0 for side in shape)):
        raise ValueError(f"kpt_shape must be a number of keypoints and 2 or 3 (got {shape!r:.40})")
    KEYPOINTS.check(shape[0], "kpt_shape")
    splits = {}
    for split, keys in _SPLITS.items():
        value = next((found[key] for key in keys if found.get(key)), ())
        values = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(item, str) for item in values):
            raise ValueError(f"{split} must be a path or a list of them (got {value!r:.40})")
        if values:
            splits[split] = values
    root, [count, size] = str(found.get("path") or ""), shape
    names = _keypoint_names(found.get("kpt_names"), count)
    flip = _flip(found.get("flip_idx"), count)
    return YoloConfig(where, folder, classes, splits or None, root, count * size, size, names, flip)


def of_one_set(listing: Listing, names: Sequence[str]) -> list[str]:
    """Return the files of one data set: one, or one in each folder of a split with equal classes.

    Raises: SourceError: several are configurations, or differ.
    """
    by_folder = {posixpath.join(posixpath.dirname(name), ""): name for name in reversed(names)}
    are_lists = all(map(is_class_file, names))
    classes = {tuple(read_config(listing, name).classes) for name in names if are_lists}
    if len(names) > 1 and len(classes) != 1:
        some = ", ".join(names[:5])
        raise SourceError(f"{listing.root}: several files name classes ({some}); pass one")
    # Files above one another are about the same images.
    inner = {one for one, other in permutations(by_folder, 2) if one.startswith(other)}
    return sorted(name for folder, name in by_folder.items() if folder not in inner)


def _lines(listing: Listing, name: str) -> list[str]:
    return listing.head(name).decode("utf-8-sig", "replace").rstrip().splitlines()


def _darknet_lists(listing: Listing, name: str) -> tuple[str, _Lists | None]:
    """Return the lists of the images of each split, and the file that names them.

    It is the ``obj.data`` that belongs to ``obj.names``, the file ``name``; or the lists are
    ``train.txt`` and ``valid.txt`` beside that one. None if there is only one, as CVAT and
    Yolo_mark write, or if none is here.
    """
    folder, base = posixpath.split(name)
    keys = [*chain.from_iterable(_SPLITS.values())]
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


class Yolo(pictures.PictureFormat):
    """YOLO labels beside images, as Ultralytics, Roboflow, Darknet and Label Studio write them."""

    name = "yolo"
    own_lists = ".txt"
    tasks: ClassVar = (ObjectDetection.name, ImageSegmentation.name)
    names_files = True

    def detect(self, listing: Listing) -> Evidence | None:
        if not listing.only and any(map(is_named, listing.others)):
            return None  # Roboflow writes a data.yaml beside labels of DOTA, too
        names = filter(is_class_file, listing.candidates(*CLASS_FILES))
        configs = configs_in(listing) or [it for it in names if _has_labels(listing, it)]
        if not configs:
            return None
        configs = of_one_set(listing, configs)
        config = read_config(listing, configs[0])
        reason = f"{configs[0]} names {len(config.classes)} classes"
        known = known_keypoints(config.names, config.flip) if config.names else None
        return Evidence(reason, self.tasks[0], configs, config.classes, keypoints=known)

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        config = read_config(listing, document)
        yield from pictures.notes_about_twins(config.classes)
        yield from _pictures(listing, config)


def _pictures(listing: Listing, config: YoloConfig) -> pictures.Pictures:
    """Yield images with the files of their labels. Raises: SourceError: most images have none."""
    line, parse = 0, partial(parse_object, config=config)
    used, seen = set[str | None](), set[str]()
    for split, images in _splits(listing, config).items():
        labelled = {image: _labels(listing, image) for image in images}
        missing = [image for image, labels in labelled.items() if labels is None]
        if len(missing) * 2 > len(labelled):
            tried = " or ".join(_labels_of(missing[0]))
            count = f"{len(missing):,} of {len(labelled):,} images of {split or 'the folder'}"
            raise SourceError(f"{config.where}: {count} have no labels, such as {tried}")
        yield from pictures.notes_about(missing, "images without labels were read without objects")
        for image, labels in labelled.items():
            line += 1
            used.add(labels)
            seen.add(image)
            own = split if config.splits else None  # else names decide
            if labels is None:
                yield Picture(line, image, own)
            else:
                found = pictures.picture_of_lines(listing, parse, line, labels, image)
                yield found._replace(split=own) if isinstance(found, Picture) else found
    unused = [name for name in _around(listing, config.folder) if name not in seen]
    yield from pictures.notes_about(unused, "images are in no split, and were skipped")
    lost = [name for name in _label_files(listing, config) if name not in used]
    yield from pictures.notes_about(lost, "files of labels have no image in a split")


def _splits(listing: Listing, config: YoloConfig) -> Mapping[str | None, Sequence[str]]:
    """Return the images of each split. Raises: SourceError: one has none, or those of another."""
    if config.splits is None:
        return grouped(_around(listing, config.folder), word_in_folders)
    splits: dict[str | None, list[str]] = {}
    for split, values in config.splits.items():
        images = [image for value in values for image in _images(listing, config, split, value)]
        if twin := next((other for other in splits if splits[other] == images), None):
            raise SourceError(f"{config.where}: {twin} and {split} name the same images; omit one")
        splits[split] = images
    return splits


def _images(listing: Listing, config: YoloConfig, split: str, value: str) -> Sequence[str]:
    """Return the images of a folder, or of a list of paths. Raises: SourceError: there are none."""
    path = _there(listing, config, value)
    if path is None:
        labels = list(_label_files(listing, config))
        layout = layout_of_pairs(listing.images, labels) if labels else ""
        where = config.where.removeprefix(listing.root)
        raise refusal(listing, f"{where}: {split} is {value!r}: no such images", layout)
    if path not in listing:
        return _below(listing, path)
    found = []
    for number, name in listing.lines(path):
        image = listing.image_at(name, posixpath.dirname(path), config.folder, "", split=split)
        if not isinstance(image, str):
            raise SourceError(f"{listing.root}{path}:{number}: there is no image {name}")
        found.append(image)
    return found


def _there(listing: Listing, config: YoloConfig, value: str) -> str | None:
    """Return the folder or list that a value of data.yaml means, relative to the root.

    Paths of another machine are tried without their leading folders, down to the last two names, or
    to the name of a list.
    """
    whole = posixpath.join(config.root, value) if config.root else value
    for path in dict.fromkeys((whole, value)):
        parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if len(parts) > FOLDERS.most:
            continue
        least = 1 if value.endswith(".txt") else 2  # many folders are named images
        for start in range(max(1, len(parts) + 1 - least)):
            tried = posixpath.join(config.folder, *parts[start:])
            if tried in listing or _below(listing, tried):
                return tried
    return None


def _below(listing: Listing, folder: str) -> Sequence[str]:
    if not folder:
        return listing.images
    # Names are sorted, and "0" follows "/".
    start, end = (bisect_left(listing.images, f"{folder}{after}") for after in "/0")
    return listing.images[start:end]


def _around(listing: Listing, folder: str) -> Sequence[str]:
    """Return the images that a file in a folder is about: below it or its twin ``images``."""
    twins = (_swapped(f"{folder}/", ("labels",), name).removesuffix("/") for name in IMAGE_FOLDERS)
    return next((found for place in (folder, *twins) if (found := _below(listing, place))), ())


def _labels_of(image: str) -> Sequence[str]:
    stem = posixpath.splitext(image)[0]
    return tuple(dict.fromkeys((f"{_swapped(stem, IMAGE_FOLDERS, 'labels')}.txt", f"{stem}.txt")))


def _swapped(stem: str, names: Sequence[str], other: str) -> str:
    """Return a path with its last folder of some names renamed to another."""
    *folders, name = stem.split("/")
    at = max((at for at, folder in enumerate(folders) if folder in names), default=None)
    return stem if at is None else "/".join([*folders[:at], other, *folders[at + 1 :], name])


def _labels(listing: Listing, image: str) -> str | None:
    return next((name for name in _labels_of(image) if name in listing), None)


def _has_labels(listing: Listing, document: str) -> bool:
    """Return whether an image that a document is about has a file of labels."""
    return any(_labels(listing, it) for it in _around(listing, posixpath.dirname(document)))


def _label_files(listing: Listing, config: YoloConfig) -> Iterator[str]:
    """Yield the files of labels below the folder of the configuration."""
    prefix = f"{config.folder}/" if config.folder else ""
    for name in listing.others:
        is_labels = "labels" in name.split("/")[:-1] and name.endswith(".txt")
        if is_labels and name.startswith(prefix) and not is_class_file(name):
            yield name


def parse_object(fields: Sequence[str], config: YoloConfig) -> Marked:
    """Return the object of a line.

    ``1 0.5 0.5 0.2 0.4`` → dog, (0.4, 0.3, 0.6, 0.7)

    Raises: ValueError: the line has no class and box, or a polygon.
    """
    try:
        kind, *numbers = map(float, fields)
    except ValueError:
        raise ValueError(f"expected a class and numbers (got {' '.join(fields):.80})") from None
    if not kind.is_integer() or not 0 <= kind < len(config.classes):
        raise ValueError(f"the class is {fields[0]}, but there are {len(config.classes)} names")
    label = config.classes[int(kind)]
    if len(numbers) == 4 or (config.keypoints and len(numbers) == 4 + config.keypoints):
        x, y, width, height = numbers[:4]
        corners = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        keypoints = keypoints_of(numbers[4:], config.per_keypoint)
        return Marked(label, corners, Details(keypoints=keypoints))
    if len(numbers) == 5:
        raise ValueError("a box with a confidence is a prediction; pass the labels")
    if len(numbers) >= 6 and len(numbers) % 2 == 0:  # a polygon
        if max(numbers) >= 2:  # the visibility of a keypoint
            raise ValueError("a point is outside the image; keypoints need kpt_shape in data.yaml")
        xs, ys = numbers[::2], numbers[1::2]
        polygon = Details(polygons=Polygons.of([numbers]))
        return Marked(label, (min(xs), min(ys), max(xs), max(ys)), polygon)
    raise ValueError(f"expected a class and a box or polygon (got {len(numbers)} numbers)")
