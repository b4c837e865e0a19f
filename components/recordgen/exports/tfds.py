"""TensorFlow Datasets' files beside the shards: ``tfds.builder_from_directory("out")`` reads them.

    features.json                   the features, with their names and types
    dataset_info.json               splits, shards, and which features are input and label
    image.class.label.labels.txt    the names of the classes

They are plain JSON in the form of tensorflow_datasets 4.9, which need not be installed. A feature
that a record may lack is a sequence of none or one value.

ArrayRecord, ``train.array_record-00000-of-00012``, has the same examples for Grain: a record is the
tf.train.Example of the shard, byte for byte. If TensorFlow Datasets can declare the features, its
files are beside them, so that ``builder_from_directory(…).as_data_source()`` reads the examples
without TensorFlow.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import IO, Any, ClassVar

from recordgen import features, storage
from recordgen.core.dataset.counts import Split
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.dataset.vocabulary import labels_text
from recordgen.core.records.example import empty_lists
from recordgen.core.task.annotation import is_image, label_files, stored_features
from recordgen.errors import MissingPackageError, UsageError
from recordgen.exports.copying import PARTS, Copy, ShardCopyExport, Stored, image_formats
from recordgen.exports.export import Export, Exported, ExportOptions, Output, environment
from recordgen.features import LIST_DTYPES, FeatureSpec
from recordgen.lineage import dataset_name
from recordgen.tables.columns import label_features

# What TensorFlow decodes as one picture with three channels.
_DECODED = ("bmp", "jpeg", "png")

_TEMPLATE = "Split-{SPLIT}/data_tfrecord-{SHARD_X_OF_Y}"


class Tfds(Export):
    """Writes the files of TensorFlow Datasets beside the dataset, without a copy."""

    def export(self, place: str, options: ExportOptions) -> Exported:
        """Write the files.

        Raises:
            SourceError: there is no finished dataset.
            UsageError: TensorFlow Datasets cannot declare its features.
            StorageError: storage failed.
        """
        output = Output.open(place)
        if output.dataset.compression != "none":
            raise UsageError(
                "TensorFlow Datasets reads no compressed shards; convert without --compression"
            )
        splits = output.dataset.splits
        check(output, splits)
        return Exported(files=write_files(output, splits, output.root, "tfrecord", _TEMPLATE))


def check(output: Output, splits: Mapping[str, Split]) -> None:
    """Check that all features can be declared. Raises: UsageError."""
    refused = sorted(image_formats(output, splits) - {*_DECODED})
    if refused:
        called = f"images of {refused[0].upper() or 'unknown'} format"
        called = "raw pixels" if refused[0] == features.RAW else called
        raise UsageError(
            f"TensorFlow Datasets cannot declare {called}; convert with --encode jpeg or "
            f"--encode png"
        )


def write_files(
    output: Output, splits: Mapping[str, Split], folder: str, file_format: str, path: str
) -> Sequence[str]:
    """Write the files of some splits; return their paths.

    ``file_format`` is ``tfrecord`` or ``array_record``, ``path`` the template of a shard's path.
    """
    dataset, stored = output.dataset, stored_features(output.dataset)
    labels = label_features(dataset)
    gaps = _gaps(dataset, stored, labels)
    # The names of the classes, by the feature of their numbers.
    of_parts = (features.IMAGE_OBJECT_LABEL, features.ENTITY_LABEL)
    numbers = (str(labels[1]), *of_parts, features.IMAGE_MASK_ENCODED)
    tags = label_files(dataset).get("tags.txt", "").splitlines()
    named = dict.fromkeys(numbers, dataset.labels) | {features.TAGS_LABEL: tags}
    classes = {name: names for name, names in named.items() if name in stored and names}
    inputs = [name for name in stored if is_image(name) or name == features.TEXT]
    is_supervised = len(inputs) == 1 and labels[1] not in (None, *of_parts, *gaps)
    texts = environment()
    texts.tests["image"] = is_image
    described = texts.get_template("tfds.json").render(
        # A name of a module of Python, as TensorFlow Datasets asks for.
        name=re.sub(r"[^a-z0-9]+", "_", dataset_name(dataset).lower()).strip("_") or "dataset",
        digest=dataset.digest,
        splits=splits,
        file_format=file_format,
        path=path,
        features=stored,
        classes=classes,
        gaps=gaps,
        mask=features.IMAGE_MASK_ENCODED,
        list_dtypes=LIST_DTYPES,
        supervised=(*inputs, labels[1]) if is_supervised else (),
    )
    files = {f"{name.replace('/', '.')}.labels.txt": labels_text(classes[name]) for name in classes}
    for name, values in json.loads(described).items():
        files[name] = json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    for name, text in files.items():
        storage.write_text(storage.inside(folder, name), text)
    return [storage.join(folder, name) for name in files]


def _gaps(
    dataset: Dataset, stored: Mapping[str, FeatureSpec], labels: tuple[str | None, str | None]
) -> Collection[str]:
    """Return the features that a record may lack."""
    # Every record of Recordgen has its sides; readers have a default for other tools'.
    images = [name.removesuffix("encoded") for name in stored if is_image(name)]
    sides = {f"{image}{side}" for image in images for side in ("height", "width")}
    gaps = {name for name, spec in stored.items() if spec.default is not None} - sides
    own = {name for name in labels if name is not None}
    is_labelled = not any(split.unlabelled for split in dataset.splits.values())
    return gaps - own if is_labelled else gaps | own


# --- ArrayRecord ---------------------------------------------------------------------------------


_FORMAT = "array_record"

# Records are read one by one, in any order.
_OPTIONS = "group_size:1"


class ArrayRecord(ShardCopyExport):
    """An ArrayRecord file for each shard."""

    name = "arrayrecord"
    keeps = PARTS
    words: ClassVar = {}

    def check(self, copy: Copy) -> None:
        _writer_class()

    def shard_name(self, split: str, at: int, count: int) -> str:
        return f"{self.word(split)}.{_FORMAT}-{at:05d}-of-{count:05d}"

    def write_shard(self, copy: Copy, file: IO[bytes], examples: Iterator[Stored]) -> None:
        stored = stored_features(copy.dataset)
        lists = {name: it.dtype for name, it in stored.items() if it.dtype in LIST_DTYPES}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "shard")  # the library writes local files only
            writer = _writer_class()(path, _OPTIONS)
            for example in examples:
                # TensorFlow Datasets finds each list in a record; protobuf joins two messages.
                values = example.values()
                lacking = {name: lists[name] for name in lists if name not in values}
                writer.write(example.record + empty_lists(lacking))
            writer.close()
            with open(path, "rb") as written:
                shutil.copyfileobj(written, file)

    def write(self, copy: Copy) -> None:
        super().write(copy)
        try:
            check(copy.output, copy.splits)
        except UsageError:
            return  # ArrayRecord holds what TensorFlow Datasets cannot declare
        template = f"{{SPLIT}}.{_FORMAT}-{{SHARD_X_OF_Y}}"
        write_files(copy.output, copy.splits, copy.to, _FORMAT, template)


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
