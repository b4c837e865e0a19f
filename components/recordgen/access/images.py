"""The images of a source and their labels: a sequence of pairs, and batches of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recordgen import features
from recordgen.access import batches as in_batches
from recordgen.access.decode import Decoder, Floats
from recordgen.core.dataset.manifest import EXAMPLES, Dataset
from recordgen.errors import RecordError, UsageError
from recordgen.features import RAW

if TYPE_CHECKING:
    from recordgen.access.source import Example, Source

_CORNERS = (
    features.IMAGE_OBJECT_YMIN,
    features.IMAGE_OBJECT_XMIN,
    features.IMAGE_OBJECT_YMAX,
    features.IMAGE_OBJECT_XMAX,
)
_LABELS = (features.IMAGE_CLASS_LABEL, features.IMAGE_OBJECT_LABEL)
_IMAGE = (features.IMAGE_ENCODED, features.IMAGE_FORMAT)
_SIZE = (features.IMAGE_HEIGHT, features.IMAGE_WIDTH)

# As in recordgen.load: boxes with less of their area in the image are skipped.
_MIN_VISIBLE = 0.3 - 1e-4

#: Pads the boxes and the labels of a batch.
PADDING = -1


class Images(Sequence[Any]):
    """The images of a source, each with its label: ``(uint8 [224, 224, 3], 3)``.

    The label is as in ``recordgen.load``: int64 [] (-1: none), float32 [classes] if an image has
    any number of labels; for object detection a dict of ``boxes`` (float32 [n, 4]: left, top, right
    and bottom, in shares of the returned image) and ``labels`` (int64 [n]). Without labels, items
    are images.

    Attributes:
        source: the records.
        class_names: the labels, in the order of their numbers.
    """

    def __init__(
        self,
        source: Source,
        size: int | tuple[int, int] | None = None,
        *,
        resize: str = "stretch",
        method: str = "bilinear",
        dtype: str = "uint8",
    ) -> None:
        self.source = source
        square = (size, size) if isinstance(size, int) else size
        self._decoder = Decoder(square, resize, method, dtype)
        self.class_names = source.class_names
        names = source.features or (source.read(0, None) if len(source) else {})
        if features.IMAGE_ENCODED not in names:
            raise UsageError(
                f"{source!r} has no feature {features.IMAGE_ENCODED}, so it has no images to "
                f"decode; read its examples with source[i]"
            )
        self._label = next((name for name in _LABELS if name in names), None)
        known = source.dataset
        if known is not None and known.task != EXAMPLES and not known.labels:
            self._label = None
        boxes = _CORNERS if self._label == features.IMAGE_OBJECT_LABEL else ()
        sizes = _SIZE if _may_be_raw(source.dataset) else ()
        self._names = frozenset((*_IMAGE, *sizes, *boxes, *([self._label] if self._label else ())))

    def __repr__(self) -> str:
        return f"recordgen.Images({self.source!r}, {self._decoder!r})"

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: Any) -> Any:
        """Return an image and its label, or a list of such pairs.

        Raises:
            IndexError: there is no such record.
            RecordError: a record or an image is damaged.
        """
        found = self.source.read(index, self._names)
        if isinstance(index, slice):
            return self._items(range(len(self))[index], found)
        if isinstance(index, Iterable):
            return self._items(list(index), found)
        return self._item(index, found)

    def __getitems__(self, indexes: Sequence[int]) -> list[Any]:
        """Return several items; PyTorch calls it with the indexes of a batch."""
        return self[list(indexes)]

    def batches(
        self,
        batch_size: int,
        *,
        seed: int | None = None,
        shard: tuple[int, int] = (0, 1),
        start: int = 0,
        drop_remainder: bool = False,
        threads: int | None = None,
    ) -> Iterator[Any]:
        """Yield the batches of one pass, made by threads ahead of time.

        Images are stacked, and labels, too. The boxes of a batch are padded with -1 to the longest
        list, and ``count`` (int64 [batch]) has their numbers.

        Args and Raises: as :func:`recordgen.access.batches.batches`.
        """
        return in_batches.batches(
            self,
            batch_size,
            seed=seed,
            shard=shard,
            start=start,
            drop_remainder=drop_remainder,
            threads=threads,
        )

    def batch(self, indexes: Sequence[int]) -> Any:
        """Return the items with these indexes as one batch. Raises: as ``[index]``."""
        return self.collate(self[list(indexes)])

    def collate(self, items: Sequence[Any]) -> Any:
        """Return items as one batch, for the ``collate_fn`` of PyTorch's ``DataLoader``."""
        if self._label is None:
            return _stacked_images(items)
        images = _stacked_images([image for image, _ in items])
        labels = [label for _, label in items]
        return images, _padded(labels) if isinstance(labels[0], dict) else np.stack(labels)

    def _items(self, indexes: Sequence[int], examples: Sequence[Example]) -> list[Any]:
        return [self._item(at, example) for at, example in zip(indexes, examples, strict=True)]

    def _item(self, index: int, example: Example) -> Any:
        if not self.source.features:  # other tools' files have lists
            example = {name: _first(name, value) for name, value in example.items()}
        try:
            raw = example.get(features.IMAGE_FORMAT) == RAW
            size = (int(example[_SIZE[0]]), int(example[_SIZE[1]])) if raw else None
            encoded = np.frombuffer(example[features.IMAGE_ENCODED], np.uint8)
            pixels, view = self._decoder.decode(encoded, size)
        except ValueError as exc:
            path, number = self.source.place(index)
            raise RecordError(
                f"{path}: record {number}: its image cannot be decoded: {exc}"
            ) from exc
        if self._label is None:
            return pixels
        label = example.get(self._label, np.int64(features.NO_LABEL))
        if self._label == features.IMAGE_OBJECT_LABEL:
            return pixels, _boxes(np.stack([example[name] for name in _CORNERS], 1), label, view)
        return pixels, self._multi_hot(label) if np.ndim(label) else label

    def _multi_hot(self, numbers: Any) -> Floats:
        found = np.zeros(len(self.class_names), np.float32)
        found[numbers] = 1
        return found


def _may_be_raw(dataset: Dataset | None) -> bool:
    return dataset is not None and dataset.encoding.pixels != ""


def _first(name: str, value: Any) -> Any:
    """Return the value of a feature of other tools' records; lists stay for boxes."""
    if name == features.IMAGE_CLASS_LABEL:
        return value[0] if len(value) else np.int64(features.NO_LABEL)
    return value[0] if name in _IMAGE and len(value) else value


def _boxes(corners: Floats, labels: Any, view: Floats) -> dict[str, Any]:
    """Return boxes relative to the view; corners are float32 [n, 4]: top, left, bottom, right."""
    start, extent = view[:2], view[2:]
    moved = (corners - np.tile(start, 2)) / np.tile(extent, 2)
    inside = np.clip(moved, 0, 1)
    areas = _areas(inside)
    seen = (areas > 0) & (areas >= np.float32(_MIN_VISIBLE) * _areas(moved)) & (labels >= 0)
    return {"boxes": inside[seen][:, [1, 0, 3, 2]], "labels": labels[seen]}


def _areas(corners: Floats) -> Floats:
    sides = np.maximum(corners[:, 2:] - corners[:, :2], 0)
    found: Floats = sides[:, 0] * sides[:, 1]
    return found


def _stacked_images(images: Sequence[Any]) -> Any:
    if len({image.shape for image in images}) > 1:
        raise UsageError("a batch needs images of one size: give images(…) a size")
    return np.stack(images)


def _padded(boxes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    count = np.array([len(each["labels"]) for each in boxes])
    most = max(1, int(count.max()))
    corners = np.full((len(boxes), most, 4), PADDING, np.float32)
    labels = np.full((len(boxes), most), PADDING, np.int64)
    for at, each in enumerate(boxes):
        corners[at, : count[at]] = each["boxes"]
        labels[at, : count[at]] = each["labels"]
    return {"boxes": corners, "labels": labels, "count": count}
