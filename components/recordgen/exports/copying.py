"""Exports that copy the examples of a dataset into a folder of another format.

    out/dataset.json, out/Split-train/…  ─▶  TO/.recordgen-export.json, TO/<files of the format>

The file ``.recordgen-export.json`` names the dataset and its splits. It is written first, and again
at the end with ``"finished": true`` and the number of files by suffix. Every file is renamed when
it is complete, and a second run keeps the files that are there, so that it does what the first one
left, and writes again what was removed since.

The images of a dataset as files have the names that their uris give:

gs://pets/a/rex.jpeg  ─▶  rex.jpeg       if all names of the split differ
                      ─▶  00000012-rex.jpeg   else, with the number of the example
"""

from __future__ import annotations

import json
import logging
import math
import os
import posixpath
import re
import unicodedata
from abc import abstractmethod
from array import array
from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import accumulate
from typing import IO, Any, ClassVar, NamedTuple

import numpy as np

from recordgen import features, storage
from recordgen.core.dataset.counts import Shard, Split
from recordgen.core.dataset.manifest import COPY_FILE, Dataset
from recordgen.core.dataset.splits import find_split
from recordgen.core.ordered import map_in_order
from recordgen.core.progress import Counter, Progress
from recordgen.core.task.annotation import declared_values, is_image, label_files, stored_features
from recordgen.errors import OutputExistsError, RecordError, UsageError
from recordgen.exports.export import Export, Exported, ExportOptions, Output
from recordgen.features import OBJECTS, FeatureSpec
from recordgen.messages import listed
from recordgen.messages.masking import without_secrets
from recordgen.payloads.header import kind_of, stored_image
from recordgen.subjects.details import Details
from recordgen.subjects.objects import StoredBox, stored_boxes
from recordgen.tasks.object_detection.annotation import Boxes
from recordgen.version import __version__

_log = logging.getLogger(__name__)

#: All that a dataset may have, in the order of the table in the documentation.
PARTS = (
    *("images", "labels", "several labels", "numbers", "splits", "boxes", "crowd", "difficult"),
    *("truncated", "area", "keypoints", "outlines", "masks", "texts", "sentiments", "entities"),
    *("videos", "tables", "declared columns"),
)

#: The features that records have if any object has a part.
OBJECT_FEATURES: Mapping[str, Sequence[str]] = {
    "crowd": features.OBJECT_FLAGS[:1],
    "difficult": features.OBJECT_FLAGS[1:2],
    "truncated": features.OBJECT_FLAGS[2:],
    "area": [features.IMAGE_OBJECT_AREA],
    "keypoints": [features.IMAGE_OBJECT_KEYPOINT_X],
    "outlines": [features.IMAGE_OBJECT_POLYGON_X, features.IMAGE_OBJECT_MASK_RUNS],
}

# The names of local files that are not complete, see recordgen.storage.local.
_UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.tmp$")


class Stored(NamedTuple):
    """One example.

    Attributes:
        number: its number in the split, from 0.
        record: the bytes of its tf.train.Example.
        specs: the features that the dataset declares.
    """

    number: int
    where: str
    record: bytes
    specs: Mapping[str, FeatureSpec]

    def values(self) -> dict[str, Any]:
        """Return lists of values by feature name. Raises: as :func:`declared_values`."""
        return declared_values(self.record, self.where, self.specs)


@dataclass
class Copy:
    """One copy of a dataset, or of one of its splits.

    Attributes:
        is_lossy: leave out the images that the format cannot hold, instead of an error.
        is_resumed: an earlier run of the same copy did not finish.
    """

    output: Output
    splits: Mapping[str, Split]
    to: str
    is_lossy: bool = False
    is_resumed: bool = False
    progress: Progress | None = None

    def __post_init__(self) -> None:
        splits = self.splits.values()
        counts = sum(it.examples for it in splits), sum(it.bytes for it in splits)
        self.counter = Counter(self.progress, *counts)

    @property
    def dataset(self) -> Dataset:
        """The content of ``dataset.json``."""
        return self.output.dataset

    def path(self, name: str) -> str:
        """Return the path of a file of the copy. Raises: as :func:`recordgen.storage.paths`."""
        return storage.inside(self.to, name)

    def has(self, name: str) -> bool:
        """Return whether an earlier run wrote a file."""
        return self.is_resumed and storage.is_file(self.path(name))

    def write_labels(self) -> None:
        """Write ``labels.txt`` and the other files that name numbers, as the dataset has them."""
        for name, text in label_files(self.dataset).items():
            storage.write_text(self.path(name), text)

    def shards(self) -> Iterator[tuple[str, int, int, Shard]]:
        """Yield (split, number of the shard, number of its first example, shard)."""
        for name, split in self.splits.items():
            firsts = accumulate((shard.examples for shard in split.shards), initial=0)
            for at, (first, shard) in enumerate(zip(firsts, split.shards, strict=False)):
                yield name, at, first, shard

    def examples(self, first: int, shard: Shard) -> Iterator[Stored]:
        """Yield the examples of a shard. Raises: RecordError: it is damaged."""
        path, specs = self.output.path_of(shard.file), {**OBJECTS, **stored_features(self.dataset)}
        before = 0
        for at, record in enumerate(self.output.records(shard.file)):
            yield Stored(first + at, f"{path}: record {at}", record, specs)
            size = shard.bytes * (at + 1) // shard.examples
            self.counter.count(1, size - before)
            before = size

    def split_examples(self, split: str) -> Iterator[Stored]:
        """Yield the examples of a split. Raises: RecordError: a shard is damaged."""
        for name, _, first, shard in self.shards():
            if name == split:
                yield from self.examples(first, shard)


class CopyExport(Export):
    """An export that copies examples into the folder ``to``.

    Attributes:
        tasks: the tasks whose examples it can hold; empty: all.
        keeps: what the format keeps of a dataset, see :data:`PARTS`.
        refused_formats: formats of images that its readers do not read, such as ``webp``.
        only_splits: the splits that the format has; empty: any.
        words: the format's words for splits, where it has others.
        said: what the copy says of itself in place of what its dataset says.
    """

    name: ClassVar[str]
    tasks: ClassVar[Collection[str]] = ()
    keeps: ClassVar[Collection[str]]
    refused_formats: ClassVar[Collection[str]] = ()
    only_splits: ClassVar[Collection[str]] = ()
    words: ClassVar[Mapping[str, str]] = {"eval": "val"}
    takes: ClassVar[Collection[str]] = ("to", "split", "lossy")
    said: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def write(self, copy: Copy) -> None:
        """Write all files that an earlier run has not written."""

    def check(self, copy: Copy) -> None:
        """Check further that the format can hold the examples. Raises: UsageError: it cannot."""

    def word(self, split: str) -> str:
        """Return the format's word for a split: ``eval`` → ``val``."""
        return self.words.get(split, split)

    def losses(self, copy: Copy) -> Mapping[str, int]:
        """Return the number of objects with each part that the copy does not keep."""
        return lost_objects(copy.output, copy.splits, self.keeps)

    def export(self, place: str, options: ExportOptions) -> Exported:
        """Copy the examples.

        Raises:
            SourceError: there is no finished dataset.
            UsageError: the format cannot hold these examples.
            SplitNotFoundError: there is no such split.
            OutputExistsError: the folder has other files.
            RecordError: a shard is damaged.
            StorageError: storage failed.
        """
        output = Output.open(place)
        to = self._folder(output, options)
        splits = output.dataset.splits
        if options.split is not None:
            name = find_split(output.root, options.split, list(splits))
            splits = {name: splits[name]}
        copy = Copy(output, splits, to, options.lossy, progress=options.progress)
        self._check_task(copy)
        self.check(copy)
        self._warn_of_losses(copy)
        mark = {
            "export": self.name,
            "digest": output.dataset.digest,
            "splits": list(copy.splits),
            **{**output.dataset.description, **self.said},
            "recordgen_version": __version__,
            "finished": False,
            "files": {},
        }
        found = _mark(to)
        if found is None:
            if any(not name.startswith(COPY_FILE) for name, _ in storage.list_dir(to)):
                raise OutputExistsError(
                    f"{to}: this folder has other files; use --to with an empty one"
                )
        elif {**found, "finished": False, "files": {}} != mark:
            raise OutputExistsError(
                f"{to}: this folder has another export ({found.get('export')} of "
                f"{', '.join(found.get('splits', ()))}); use --to with another folder, or remove it"
            )
        if not (found and found["finished"] and Tally(found.get("files", {})) <= _suffixes(to)):
            copy.is_resumed = found is not None
            storage.write_text(copy.path(COPY_FILE), _text(mark))
            with copy.counter:
                self.write(copy)
            if copy.is_resumed:
                _remove_unfinished(to)
            finished = {**mark, "finished": True, "files": dict(_suffixes(to))}
            storage.write_text(copy.path(COPY_FILE), _text(finished))
        return Exported(files=(to,))

    def _folder(self, output: Output, options: ExportOptions) -> str:
        if options.to is None:
            raise UsageError(
                f"export {self.name} copies the examples; name the folder: --to FOLDER"
            )
        to = storage.normal(os.fspath(options.to))
        if storage.is_inside(to, output.root) or to.rstrip("/") == output.root.rstrip("/"):
            raise UsageError(f"--to must be a folder outside of the dataset (got {options.to!r})")
        storage.check_writable(to)
        return to

    def _check_task(self, copy: Copy) -> None:
        task = copy.dataset.task
        if self.tasks and task not in self.tasks:
            raise UsageError(
                f"{self.name} keeps {', '.join(self.keeps)} (task {listed(self.tasks, str)}; got "
                f"{task}); export parquet and webdataset take all tasks"
            )
        other = [name for name in copy.splits if self.only_splits and name not in self.only_splits]
        if other:
            raise UsageError(
                f"{self.name} knows the splits {', '.join(self.only_splits)} (got {other[0]!r}); "
                f"use --split to export one of them"
            )
        if len({*map(self.word, copy.splits)}) < len(copy.splits):
            raise UsageError(
                f"two of {', '.join(copy.splits)} get one name in {self.name}; use --split NAME"
            )
        kinds = {kind for it in copy.splits.values() if it.images for kind in it.images.formats}
        refused = sorted(kinds & {*self.refused_formats})
        if refused and not copy.is_lossy:
            raise UsageError(
                f"{self.name} holds no {refused[0].upper()} images, and the dataset has some; "
                f"convert with --encode png or --encode jpeg, or leave them out with --lossy"
            )

    def _warn_of_losses(self, copy: Copy) -> None:
        """Warn of what a copy loses of its objects; a crowd must not become a single object."""
        if lost := self.losses(copy):
            counts = (f"{part} ({number:,} objects)" for part, number in lost.items())
            left_out = "; crowds are left out, and export coco keeps them" * ("crowd" in lost)
            _log.warning("the copy does not keep: %s%s", ", ".join(counts), left_out)


def _mark(to: str) -> dict[str, Any] | None:
    """Return what the folder is a copy of, None if nothing says it."""
    try:
        found = json.loads(storage.read_text(storage.join(to, COPY_FILE)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        raise OutputExistsError(f"{storage.join(to, COPY_FILE)}: cannot be read: {exc}") from exc
    return found if isinstance(found, dict) else {}


def _remove_unfinished(to: str) -> None:
    """Remove the temporary files of a run that was killed; object stores have none."""
    if storage.is_local(to):
        for folder, _, names in os.walk(storage.local_path(to)):
            for name in filter(_UNFINISHED.search, names):
                os.remove(os.path.join(folder, name))


def _suffixes(folder: str) -> Tally[str]:
    """Return how many files below a folder have each suffix."""
    found = Tally[str]()
    for name, is_folder in storage.list_dir(folder):
        suffix = posixpath.splitext(name)[1]
        found.update(_suffixes(storage.join(folder, name)) if is_folder else [suffix])
    return found


def _text(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=2) + "\n"


def lost_objects(
    output: Output, splits: Collection[str], keeps: Collection[str]
) -> Mapping[str, int]:
    """Return the number of objects with each part that a copy does not keep.

    It is 0 if nothing says it, because the dataset has no ``examples.parquet``.

    Raises: SourceError: ``examples.parquet`` is damaged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    has = frozenset(output.dataset.objects)
    lost = {part for part, names in OBJECT_FEATURES.items() if part not in keeps and has & {*names}}
    counts = dict.fromkeys(sorted(lost), 0)
    if not lost or not output.has_examples():
        return counts
    for part in output.example_parts(("split", "annotation")):
        is_copied = pc.is_in(part["split"].cast("string"), value_set=pa.array(list(splits)))
        for annotation in part.filter(is_copied)["annotation"].to_pylist():
            for details in Boxes.from_json(annotation).details:
                for lost_part in lost & _parts_of(details):
                    counts[lost_part] += 1
    return {name: count for name, count in counts.items() if count}


def _parts_of(details: Details) -> set[str]:
    has = {
        "crowd": features.IS_CROWD in details.flags,
        "difficult": features.DIFFICULT in details.flags,
        "truncated": bool(details.flags & {*features.FLAGS[2:]}),
        "area": details.area is not None,
        "keypoints": bool(details.keypoints),
        "outlines": bool(details.digest),  # examples.parquet has no more of them
    }
    return {part for part, is_there in has.items() if is_there}


class ShardCopyExport(CopyExport):
    """A copy with a file for each shard, so that a second run skips whole shards."""

    @abstractmethod
    def shard_name(self, split: str, at: int, count: int) -> str:
        """Return the path of a file: ``train``, 0, 12 → ``data/train-00000-of-00012.parquet``."""

    @abstractmethod
    def write_shard(self, copy: Copy, file: IO[bytes], examples: Iterator[Stored]) -> None:
        """Write one file. ``file`` can only be written, from the beginning to the end."""

    def write(self, copy: Copy) -> None:
        for split, at, first, shard in copy.shards():
            name = self.shard_name(split, at, len(copy.splits[split].shards))
            if copy.has(name):
                copy.counter.count(shard.examples, shard.bytes)
                continue
            with storage.replacing(copy.path(name)) as file:
                self.write_shard(copy, file, copy.examples(first, shard))


# --- files of images -----------------------------------------------------------------------------


_THREADS = 8
_MAX_BYTES_AHEAD = 256 << 20

# Characters that some file system or some reader of lists does not allow in names.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f\\/:*?"<>|]+')
_MAX_STEM_BYTES = 180

# The suffixes of the formats whose name is none; empty: an unknown format.
_SUFFIXES: Mapping[str, Sequence[str]] = {"jpeg": (".jpg", ".jpeg"), "": (".bin",)}

# What is known of boxes in numbers with fractions.
_NUMBERS = [name for name, spec in features.OBJECTS.items() if spec.dtype == "float32"]


class ImageExample(NamedTuple):
    """One image."""

    where: str
    name: str
    data: bytes
    values: Mapping[str, Sequence[Any]]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return posixpath.splitext(self.name)[0]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels. Raises: RecordError: unknown."""
        found = (self.values.get(name) for name in (features.IMAGE_WIDTH, features.IMAGE_HEIGHT))
        width, height = (value[0] if value else 0 for value in found)
        if width < 1 or height < 1:
            raise RecordError(f"{self.where}: the image has no size, and boxes need one")
        return width, height

    @property
    def boxes(self) -> Sequence[StoredBox]:
        """The boxes. Raises: RecordError: damaged."""
        try:
            for name in _NUMBERS:
                if not all(map(math.isfinite, self.values.get(name, ()))):
                    raise ValueError(f"{name} must be finite")
            return stored_boxes(self.values)
        except ValueError as exc:
            raise RecordError(f"{self.where}: {exc}") from exc

    @property
    def objects(self) -> Sequence[StoredBox]:
        """The boxes of single objects: a format without a word for crowds leaves those out."""
        return [box for box in self.boxes if features.IS_CROWD not in box.details.flags]

    @property
    def labels(self) -> Sequence[str]:
        """The labels of the image. Raises: RecordError: they are no text."""
        try:
            return [text.decode() for text in self.values.get(features.IMAGE_CLASS_TEXT, ())]
        except UnicodeDecodeError as exc:
            raise RecordError(f"{self.where}: {features.IMAGE_CLASS_TEXT}: {exc}") from exc


#: Returns the files of one image: contents by path in the copy.
FilesOf = Callable[[ImageExample], Mapping[str, bytes]]


class ImageCopyExport(CopyExport):
    """A copy with a file for each image."""

    def write_images(
        self, copy: Copy, files_of: Callable[[str, ImageExample], Mapping[str, bytes]]
    ) -> None:
        """Write the files of all images; ``files_of`` takes the word of the split first."""
        for split in copy.splits:
            for _ in self.images(copy, split, partial(files_of, self.word(split))):
                pass

    def images(self, copy: Copy, split: str, files_of: FilesOf) -> Iterator[ImageExample]:
        """Yield the images of a split, in order, when their files are written."""
        is_numbered = not _names_differ(copy, split)

        def examples() -> Iterator[ImageExample]:
            for stored in copy.split_examples(split):
                values = stored.values()
                if (image := stored_image(values)) is None:
                    raise RecordError(f"{stored.where}: there is no {features.IMAGE_ENCODED}")
                if image[1] in self.refused_formats:
                    continue
                if not image[1]:
                    raise RecordError(
                        f"{stored.where}: {features.IMAGE_ENCODED} must be a JPEG, PNG, GIF, BMP "
                        f"or WEBP (got {kind_of(image[0])})"
                    )
                [uri] = values.get(features.IMAGE_SOURCE_ID) or [b""]
                name = file_name(uri.decode("utf-8", "replace"), image[1])
                if is_numbered:
                    name = f"{stored.number:08d}-{name}"
                yield ImageExample(stored.where, name, image[0], values)

        def written(example: ImageExample) -> ImageExample:
            for name, data in files_of(example).items():
                try:
                    path = copy.path(name)
                except RecordError as exc:
                    raise RecordError(f"{example.where}: {exc}") from exc
                if not copy.has(name):
                    storage.write_bytes(path, data)
            return example

        return map_in_order(
            written,
            examples(),
            threads=_THREADS,
            bytes_of=lambda example: len(example.data),
            max_bytes=_MAX_BYTES_AHEAD,
        )


def in_folder(folder: str) -> FilesOf:
    """Return a function that names one file: the image, in a folder of the copy."""
    return lambda image: {f"{folder}/{image.name}": image.data}


def has_boxes(dataset: Dataset) -> bool:
    """Return whether the examples have boxes."""
    return features.IMAGE_OBJECT_XMIN in stored_features(dataset)


def check_sizes(copy: Copy) -> None:
    """Check that the sizes of images with boxes are known. Raises: UsageError."""
    for name, split in copy.splits.items():
        if split.images is None and has_boxes(copy.dataset):
            raise UsageError(
                f"boxes in pixels need the sizes of images, and split {name!r} lacks some; convert "
                f"the images again"
            )


def image_formats(output: Output, splits: Mapping[str, Split]) -> set[str]:
    """Return the formats of all images; if ``dataset.json`` has none, from the records."""
    images = [name for name in stored_features(output.dataset) if is_image(name)]
    if not images:
        return set()
    known = [split.images for split in splits.values()]
    if None not in known:
        return {kind for stats in known if stats is not None for kind in stats.formats}
    copy = Copy(output, splits, "")
    return {
        str(bytes(value), "utf-8", "replace")
        for _, _, first, shard in copy.shards()
        for example in copy.examples(first, shard)
        for values in [example.values()]
        for name in images
        for value in values.get(f"{name.removesuffix('encoded')}format", ())
    }


def file_name(uri: str, kind: str) -> str:
    """Return a name for an image of a format: ``gs://b/a:1.JPG``, ``jpeg`` → ``a_1.JPG``.

    The format is one of :func:`recordgen.payloads.header.stored_image`, so the suffix is safe, too.
    """
    stem, suffix = _stem_and_suffix(uri)
    known = _SUFFIXES.get(kind, (f".{kind}",))
    return f"{stem}{suffix if suffix.lower() in known else known[0]}"


def _stem_and_suffix(uri: str) -> tuple[str, str]:
    """Return the safe name of a uri in two parts: ``gs://b/a:1.JPG`` → ``a_1``, ``.JPG``."""
    text = without_secrets(uri)
    path = text.partition("?")[0] if "://" in text else text
    stem, suffix = posixpath.splitext(posixpath.basename(path.replace("\\", "/")))
    plain = _UNSAFE.sub("_", stem).lstrip(".").encode()[:_MAX_STEM_BYTES]
    stem = plain.decode("utf-8", "ignore").strip() or "image"
    return f"_{stem}" if storage.is_reserved(stem) else stem, suffix


def one_spelling(name: str) -> str:
    """Return the same text for all names that are one on macOS or Windows: ``Café`` → ``café``."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _names_differ(copy: Copy, split: str) -> bool:
    """Return whether all images of a split have different names, see :func:`one_spelling`.

    It needs 8 bytes for each image of the split. False if the names are unknown, or the file with
    them is of another state of the dataset.
    """
    import pyarrow.compute as pc

    hashes = array("Q")
    for part in copy.output.example_parts(("split", "uri")):
        for uri in part.filter(pc.equal(part["split"].cast("string"), split))["uri"].to_pylist():
            stem = one_spelling(_stem_and_suffix(uri)[0]).encode()
            hashes.append(int.from_bytes(blake2b(stem, digest_size=8).digest(), "little"))
    return copy.splits[split].examples == len(hashes) == len(np.unique(hashes))
