"""The first records of an output, as plain Python values.

Their images become files, byte for byte or with boxes.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from recordgen import features, storage
from recordgen.core.dataset import manifest
from recordgen.core.dataset.splits import TRAIN, find_split
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_record
from recordgen.errors import PayloadError, RecordError, SourceError
from recordgen.features import FeatureSpec
from recordgen.messages.masking import without_secrets
from recordgen.payloads.drawing import draw_boxes, draw_mask
from recordgen.payloads.header import stored_image
from recordgen.subjects.masks import background_of
from recordgen.subjects.objects import OBJECT_FEATURES, stored_boxes
from recordgen.tasks import TASKS

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


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
    files = find_shards(output, split)
    lists = _list_features(files)
    found = []
    records = ((file, record) for file in files for record in RECORDS.read(file))
    for index, (file, record) in enumerate(islice(records, num)):
        where = f"{file}: record {index}"
        values = parse_record(record, where)
        plain = {
            name: value[0] if len(value) == 1 and name not in lists else value
            for name, value in values.items()
        }
        image = None if to is None else _extract(values, where, index, to)
        found.append(Record(file, index, plain, image))
    return found


def find_shards(output: str, split: str | None = None) -> list[str]:
    """Return the shards of one split of an output, or the files that match a pattern.

    Raises: SourceError: there are none; SplitNotFoundError: there is no such split.
    """
    output = manifest.output_of(output)
    folders = storage.list_folders(output, manifest.SPLIT_PREFIX)
    if not folders:
        if files := storage.list_files(output):
            return files
        raise SourceError(
            f"{output}: no {manifest.SPLIT_PREFIX}* folders and no TFRecord files here; give an "
            f"output of recordgen convert or recordgen.write, or files of records"
        )
    names = [name.removeprefix(manifest.SPLIT_PREFIX) for name in folders]
    chosen = split or (TRAIN if TRAIN in names else names[0])
    folder = storage.join(output, manifest.split_dir(find_split(output, chosen, names)))
    return [
        storage.join(folder, name) for name, is_folder in storage.list_dir(folder) if not is_folder
    ]


def _list_features(files: Sequence[str]) -> frozenset[str]:
    """Return the features that stay lists even if a record has one value."""
    folder = posixpath.dirname(next(iter(files), ""))
    specs: Mapping[str, FeatureSpec] = {}
    if posixpath.basename(folder).startswith(manifest.SPLIT_PREFIX):
        with suppress(SourceError):  # other tools' records have no dataset.json
            dataset = manifest.read_dataset(posixpath.dirname(folder))
            specs = TASKS[dataset.task].features if dataset.task in TASKS else {}
            specs = {**specs, **dataset.features}
    several = (name for name, spec in specs.items() if spec.shape is None)
    return frozenset((*OBJECT_FEATURES, *several))


def _extract(values: Mapping[str, Sequence[Any]], where: str, index: int, to: str) -> str:
    """Write the image as ``00003-name.jpg``, with its boxes or mask on it; return the path."""
    if (image := stored_image(values)) is None:
        raise RecordError(f"{where}: there is no {features.IMAGE_ENCODED} to extract")
    data, suffix = image[0], _as_name(image[1]) or "bin"
    what = "boxes"
    try:
        if boxes := stored_boxes(values):
            data, suffix = draw_boxes(data, boxes)
        elif (mask := stored_image(values, features.IMAGE_MASK_ENCODED)) is not None:
            what = "mask"
            data, suffix = draw_mask(data, mask[0], background_of(values))
    except (PayloadError, ValueError) as exc:
        raise RecordError(
            f"{where}: cannot draw its {what}: {exc}; omit --to to see its features"
        ) from exc
    ids = values.get(features.IMAGE_SOURCE_ID, ())  # any type, in other tools' records
    uri = next((value for value in ids if isinstance(value, bytes)), b"")
    stem = posixpath.splitext(_as_name(uri.decode("utf-8", "replace")))[0]
    name = f"{index:05d}-{stem[:80]}.{'jpg' if suffix == 'jpeg' else suffix}"
    path = storage.inside(to, name)
    storage.write_bytes(path, data)
    return path


def _as_name(text: str) -> str:
    """Return the last component of a uri, made safe for a file name."""
    return _UNSAFE.sub("_", without_secrets(text).rsplit("/", 1)[-1])


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
