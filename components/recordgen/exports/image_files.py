"""The images of a dataset as files, each with the name that its uri gives it.

gs://pets/a/rex.jpeg  ─▶  rex.jpeg       if all names of the split differ
                      ─▶  00000012-rex.jpeg   else, with the number of the example
"""

from __future__ import annotations

import math
import posixpath
import re
import unicodedata
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from recordgen import features, storage
from recordgen.core.dataset.counts import Split
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.ordered import map_in_order
from recordgen.core.task.annotation import is_image, stored_features
from recordgen.errors import RecordError, UsageError
from recordgen.exports.copying import Copy, CopyExport
from recordgen.exports.export import Output
from recordgen.messages.masking import without_secrets
from recordgen.payloads.stored import kind_of, stored_image
from recordgen.subjects.objects import StoredBox, stored_boxes

_THREADS = 8
_MAX_BYTES_AHEAD = 256 << 20

# Characters that some file system or some reader of lists does not allow in names.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f\\/:*?"<>|]+')
_MAX_STEM_BYTES = 180

# The suffixes of the formats whose name is none; empty: an unknown format.
_SUFFIXES: Mapping[str, Sequence[str]] = {"jpeg": (".jpg", ".jpeg"), "": (".bin",)}

# What is known of boxes in numbers with fractions.
_NUMBERS = [name for name, spec in features.OBJECTS.items() if spec.dtype == "float32"]

# The words of other tools for a split.
_WORDS = {"eval": "val"}


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
            for _ in self.images(copy, split, partial(files_of, split_word(split))):
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


def split_word(split: str) -> str:
    """Return the word of other tools for a split: ``eval`` → ``val``."""
    return _WORDS.get(split, split)


def file_name(uri: str, kind: str) -> str:
    """Return a name for an image of a format: ``gs://b/a:1.JPG``, ``jpeg`` → ``a_1.JPG``.

    The format is one of :func:`recordgen.payloads.stored.stored_image`, so the suffix is safe, too.
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
