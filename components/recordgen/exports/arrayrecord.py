"""ArrayRecord: ``train.array_record-00000-of-00012``, with the same examples, for Grain.

A record is the tf.train.Example of the shard, byte for byte. If TensorFlow Datasets can declare the
features, its files are beside them, so that ``builder_from_directory(…).as_data_source()`` reads
the examples without TensorFlow.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from recordgen.errors import MissingPackageError, UsageError
from recordgen.exports import tfds
from recordgen.exports.copying import PARTS, Copy, ShardCopyExport, Stored

_FORMAT = "array_record"

# Records are read one by one, in any order.
_OPTIONS = "group_size:1"


class ArrayRecord(ShardCopyExport):
    """An ArrayRecord file for each shard."""

    name = "arrayrecord"
    keeps = PARTS

    def check(self, copy: Copy) -> None:
        _writer_class()

    def shard_name(self, split: str, at: int, count: int) -> str:
        return f"{split}.{_FORMAT}-{at:05d}-of-{count:05d}"

    def write_shard(self, copy: Copy, file: IO[bytes], examples: Iterator[Stored]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "shard")  # the library writes local files only
            writer = _writer_class()(path, _OPTIONS)
            for example in examples:
                writer.write(example.record)
            writer.close()
            with open(path, "rb") as written:
                shutil.copyfileobj(written, file)

    def write(self, copy: Copy) -> None:
        super().write(copy)
        try:
            tfds.check(copy.output, copy.splits)
        except UsageError:
            return  # ArrayRecord holds what TensorFlow Datasets cannot declare
        template = f"{{SPLIT}}.{_FORMAT}-{{SHARD_X_OF_Y}}"
        tfds.write_files(copy.output, copy.splits, copy.to, _FORMAT, template)


def _writer_class() -> Any:
    """Return the library's writer. Raises: MissingPackageError: it is not installed."""
    try:
        from array_record.python.array_record_module import ArrayRecordWriter
    except ImportError as exc:
        raise MissingPackageError(
            "export arrayrecord needs array_record, which is not installed: "
            "pip install array_record (Linux and macOS)"
        ) from exc
    return ArrayRecordWriter
