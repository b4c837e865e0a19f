"""The first records of an output, as plain Python values.

Their images become files, byte for byte or with boxes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from recordgen import features, storage
from recordgen.access.shards import ShardSet, find_shards
from recordgen.core.dataset import manifest
from recordgen.core.dataset.splits import TRAIN
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_record
from recordgen.core.task.annotation import stored_features
from recordgen.errors import PayloadError, RecordError
from recordgen.exports.copying import file_name
from recordgen.payloads.drawing import draw_boxes, draw_mask
from recordgen.payloads.header import stored_image
from recordgen.subjects.masks import background_of
from recordgen.subjects.objects import OBJECT_FEATURES, stored_boxes


@dataclass(frozen=True)
class Record:
    """One record.

    Attributes:
        file: its shard.
        index: its position among the shown records, from 0.
        features: plain values by feature name. A list of one becomes its element, except for
            features that may have several values in the task's examples.
        image_file: path of the extracted image, or None.
    """

    file: str
    index: int
    features: dict[str, Any]
    image_file: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the record with text for bytes, and the image's size instead of its bytes."""
        shown = {name: _shown(value) for name, value in self.features.items()}
        return {"file": self.file, "index": self.index, "image_file": self.image_file, **shown}


def inspect(
    output: str, *, split: str | None = None, num: int = 5, to: str | None = None
) -> list[Record]:
    """Read the first records of a split and extract their images.

    Args:
        output: a converted output, a TFX Examples uri, or a path or glob of TFRecord files.
        split: the split to read; None: ``train``, or the first split.
        num: number of records.
        to: folder for the images. A file has the bytes of ``image/encoded``; raw pixels become a
            PNG, and an image with boxes is re-encoded with the boxes and their labels drawn on it.

    Raises:
        SourceError: there are no records to read.
        SplitNotFoundError: there is no such split.
        RecordError: a shard is damaged or holds other data, or an image with boxes does not decode.
    """
    folders = storage.list_folders(manifest.output_of(output), manifest.SPLIT_PREFIX)
    there = [name.removeprefix(manifest.SPLIT_PREFIX) for name in folders]
    first = TRAIN if TRAIN in there or not there else there[0]
    shards = find_shards(output, split or first)
    specs = {} if shards.dataset is None else stored_features(shards.dataset)
    lists = {*OBJECT_FEATURES, *(name for name, spec in specs.items() if spec.shape is None)}
    found = []
    for index, (file, record) in enumerate(islice(_records(shards), num)):
        where = f"{file}: record {index}"
        values = parse_record(record, where)
        plain = {
            name: value[0] if len(value) == 1 and name not in lists else value
            for name, value in values.items()
        }
        image = None if to is None else _extract(values, where, index, to)
        found.append(Record(file, index, plain, image))
    return found


def _records(shards: ShardSet) -> Iterator[tuple[str, bytes]]:
    """Yield each record with its file. Raises: SourceError: the file is missing."""
    for file in shards.files:
        shards.check_files([replace(file, damage="")])
        for record in RECORDS.read(file.path):
            yield file.path, record


def _extract(values: Mapping[str, Sequence[Any]], where: str, index: int, to: str) -> str:
    """Write the image as ``00003-name.jpg``, with its boxes or mask on it; return the path."""
    if (image := stored_image(values)) is None:
        raise RecordError(f"{where}: there is no {features.IMAGE_ENCODED} to extract")
    data, kind = image
    what = "boxes"
    try:
        if boxes := stored_boxes(values):
            data, kind = draw_boxes(data, boxes)
        elif (mask := stored_image(values, features.IMAGE_MASK_ENCODED)) is not None:
            what = "mask"
            data, kind = draw_mask(data, mask[0], background_of(values))
    except (PayloadError, ValueError) as exc:
        raise RecordError(
            f"{where}: cannot draw its {what}: {exc}; omit --to to see its features"
        ) from exc
    ids = values.get(features.IMAGE_SOURCE_ID, ())  # any type, in other tools' records
    uri = next((value for value in ids if isinstance(value, bytes)), b"")
    path = storage.inside(to, f"{index:05d}-{file_name(uri.decode('utf-8', 'replace'), kind)}")
    storage.write_bytes(path, data)
    return path


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if isinstance(value, float):
        digits = str(np.float32(value))  # as many as tell it from others
        return float(digits) if math.isfinite(value) else digits  # JSON has no NaN, no infinity
    if not isinstance(value, bytes):
        return value
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(value)} bytes"
    is_text = all(map(str.isprintable, text.split()))  # line breaks are allowed
    return text if is_text else f"{len(value)} bytes"
