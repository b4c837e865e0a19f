"""WebDataset: a tar for each shard, whose members with the same stem are one example.

    train-000000.tar    00000012.jpg     the image; of several, 00000012.day.jpg and others
                        00000012.cls     the number of its label, if all examples have one
                        00000012.json    {"source_id": "rex.jpg", "label": 3, …}
    labels.txt          the labels, by number

The format: "WebDataset", github.com/webdataset/webdataset. Members have no time and no owner, so
the same dataset gives the same bytes.
"""

from __future__ import annotations

import json
import logging
import math
import posixpath
import tarfile
from collections.abc import Iterator, Mapping, Set
from itertools import chain
from typing import IO, Any

from recordgen.errors import RecordError, UsageError
from recordgen.exports import copying
from recordgen.exports.columns import IMAGE, Column, columns_of
from recordgen.messages import listed
from recordgen.messages.masking import masked
from recordgen.tables.columns import image_suffix, table_of

_log = logging.getLogger(__name__)

# Columns whose numbers labels.txt names.
_NUMBERED = ("label", "labels")

# Samples that wait for one with values in its lists.
_HELD_BYTES = 64 << 20


class WebDataset(copying.ShardCopyExport):
    """A tar for each shard."""

    name = "webdataset"
    keeps = copying.PARTS

    def check(self, copy: copying.Copy) -> None:
        columns = columns_of(copy.dataset)
        for column in columns:
            if _has_bytes(column.feature):
                raise UsageError(
                    f"{self.name} stores values as JSON, and the feature {column.name!r} has bytes "
                    f"of an unknown kind; use export parquet or arrayrecord, which hold them"
                )
        images = [column.name for column in columns if column.feature == IMAGE]
        if len({image_suffix(name, "") for name in images}) < len(images):
            raise UsageError(
                f"{self.name} names the files of images by their columns, and two of "
                f"{', '.join(images):.200} have one name there; use export parquet"
            )
        copying.check_sizes(copy)
        if len(formats := copying.image_formats(copy.output, copy.splits)) > 1:
            _log.warning(
                "%s: images have the formats %s, and Hugging Face's reader takes one; "
                "convert with --encode png or --encode jpeg for it",
                masked(copy.to),
                listed(sorted(formats), str),
            )

    def shard_name(self, split: str, at: int, count: int) -> str:
        return f"{self.word(split)}-{at:06d}.tar"

    def write_shard(
        self, copy: copying.Copy, file: IO[bytes], examples: Iterator[copying.Stored]
    ) -> None:
        columns = columns_of(copy.dataset)
        images = {column.name: column for column in columns if column.feature == IMAGE}
        others = [column for column in columns if column.name not in images]
        is_table = table_of(copy.dataset) is not None
        are_labelled = not any(split.unlabelled for split in copy.splits.values())

        def sample(example: copying.Stored) -> tuple[bytes, set[str]]:
            """Return the members of an example, and its lists that have values."""
            try:
                values = example.values()
                members = dict(_image_members(images, values))
                found = {column.name: column.read(values) for column in others}
            except (TypeError, ValueError) as exc:
                raise RecordError(f"{example.where}: {exc}") from exc
            for column in others:
                is_class = isinstance(column.feature, Mapping) and "names" in column.feature
                if is_class and found[column.name] is not None:
                    if are_labelled:
                        members["cls"] = str(found[column.name]).encode()
                    if is_table or column.name not in _NUMBERED:  # columns may have any name
                        found[column.name] = column.feature["names"][found[column.name]]
            members["json"] = json.dumps(_finite(found), ensure_ascii=False).encode()
            key = f"{example.number:08d}"
            pieces = (_pieces(f"{key}.{name}", data) for name, data in members.items())
            lists = set[str]().union(*(_filled(name, value) for name, value in found.items()))
            return b"".join(chain.from_iterable(pieces)), lists

        wanted = frozenset[str]().union(*map(_lists_in, others))
        for members in _types_first(map(sample, examples), wanted):
            file.write(members)
        file.write(bytes(2 * tarfile.BLOCKSIZE))

    def write(self, copy: copying.Copy) -> None:
        super().write(copy)
        copy.write_labels()


def _types_first(samples: Iterator[tuple[bytes, set[str]]], wanted: Set[str]) -> Iterator[bytes]:
    """Yield samples, first of all those that fill a list which no sample before fills.

    Hugging Face's reader takes the types in lists from the first five samples of a tar.
    """
    first, others, seen, held = list[bytes](), list[bytes](), set[str](), 0
    for sample, lists in samples:
        (others if lists <= seen else first).append(sample)
        seen |= lists
        held += len(sample)
        if wanted <= seen or held > _HELD_BYTES:
            break
    yield from (*first, *others)
    yield from (sample for sample, _ in samples)


def _lists_in(column: Column) -> set[str]:
    """Return the names of the lists in a column: ``labels``; ``objects.bbox``, ``objects.area``."""
    if isinstance(column.feature, list):
        return {f"{column.name}.{field}" for field in column.feature[0]}
    return {column.name} if column.feature["_type"] == "Sequence" else set()


def _filled(name: str, value: Any) -> set[str]:
    """Return the lists in the value of a column that have values, as :func:`_lists_in`."""
    if not (isinstance(value, list | tuple) and value):
        return set()
    if not isinstance(value[0], Mapping):
        return {name}
    return {f"{name}.{key}" for it in value for key in it if it[key] not in (None, [], ())}


def _image_members(
    images: Mapping[str, Column], values: Mapping[str, Any]
) -> Iterator[tuple[str, bytes]]:
    """Yield the suffix and the bytes of each image: ``jpg``; of several, ``day.jpg``."""
    for name, column in images.items():
        image = column.read(values)
        if image is not None:
            suffix = posixpath.splitext(image["path"])[1].lower().removeprefix(".") or "bin"
            suffix = "jpg" if suffix == "jpeg" else suffix
            yield (
                suffix if len(images) == 1 else image_suffix(name, suffix),
                image["bytes"],
            )


def _pieces(name: str, data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return a member in pieces. ``tarfile`` seeks in its file, or copies each part many times."""
    member = tarfile.TarInfo(name)  # its time, owner and group are 0
    member.size = len(data)
    return member.tobuf(tarfile.GNU_FORMAT), data, bytes(-len(data) % tarfile.BLOCKSIZE)


def _has_bytes(feature: Any) -> bool:
    if isinstance(feature, list):
        return any(map(_has_bytes, feature[0].values()))
    return (
        _has_bytes(feature["feature"]) if "feature" in feature else feature.get("dtype") == "binary"
    )


def _finite(value: Any) -> Any:
    """Return a value for JSON, which has no infinity and no NaN: they become null."""
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
