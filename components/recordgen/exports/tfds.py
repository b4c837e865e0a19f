"""TensorFlow Datasets' files beside the shards: ``tfds.builder_from_directory("out")`` reads them.

    features.json                   the features, with their names and types
    dataset_info.json               splits, shards, and which features are input and label
    image.class.label.labels.txt    the names of the classes

They are plain JSON in the form of tensorflow_datasets 4.9, which need not be installed. A feature
that a record may lack is a sequence of none or one value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recordgen import features, storage
from recordgen.core.dataset.manifest import Dataset, Split
from recordgen.core.dataset.vocabulary import labels_text
from recordgen.core.task.stored import is_image, stored_features
from recordgen.errors import UsageError
from recordgen.exports.beside import TFDS_FILES
from recordgen.exports.copying import Copy
from recordgen.exports.export import Export, Exported, ExportOptions
from recordgen.exports.features import dataset_name, label_features
from recordgen.exports.output import Output
from recordgen.features import LIST_DTYPES, FeatureSpec
from recordgen.tasks.label_files import label_files

_FEATURES_FILE, _INFO_FILE = TFDS_FILES

# What TensorFlow decodes as one picture with three channels.
_DECODED = ("bmp", "jpeg", "png")

_TEMPLATE = "Split-{SPLIT}/data_tfrecord-{SHARD_X_OF_Y}"
_MODULE = "tensorflow_datasets.core.features"

# Parts of an image that every record of Recordgen has; readers have a default for other tools'.
_ALWAYS_THERE = ("height", "width")


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
    refused = sorted(_image_formats(output, splits) - {*_DECODED})
    if refused:
        called = "raw pixels" if refused[0] == features.RAW else f"{refused[0].upper()} images"
        raise UsageError(
            f"TensorFlow Datasets cannot declare {called}; convert with --encode jpeg or "
            f"--encode png"
        )


def write_files(
    output: Output, splits: Mapping[str, Split], folder: str, file_format: str, template: str
) -> Sequence[str]:
    """Write the files, and return their paths.

    Args:
        output: the dataset.
        splits: its splits that the folder has.
        folder: where to write.
        file_format: ``tfrecord`` or ``array_record``.
        template: the paths of the shards.
    """
    dataset = output.dataset
    classes = dict(_classes(dataset))
    declared = {
        name: _feature(dataset, name, spec, classes)
        for name, spec in stored_features(dataset).items()
    }
    head = {"pythonClassName": f"{_MODULE}.features_dict.FeaturesDict"}
    files = {
        f"{name.replace('/', '.')}.labels.txt": labels_text(names)
        for name, names in classes.items()
    }
    files[_FEATURES_FILE] = _json({**head, "featuresDict": {"features": declared}})
    files[_INFO_FILE] = _json(_info(dataset, splits, file_format, template))
    paths = {storage.join(folder, name): text for name, text in files.items()}
    for path, text in paths.items():
        storage.write_text(path, text)
    return list(paths)


def _image_formats(output: Output, splits: Mapping[str, Split]) -> set[str]:
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


def _classes(dataset: Dataset) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the features of numbers of classes, each with the names of the classes."""
    stored = stored_features(dataset)
    number = label_features(dataset)[1]
    for name in (number, features.IMAGE_OBJECT_LABEL, features.ENTITY_LABEL):
        if name in stored and name is not None and dataset.labels:
            yield name, dataset.labels
    tags = label_files(dataset).get("tags.txt", "").splitlines()
    if features.TAGS_LABEL in stored and tags:
        yield features.TAGS_LABEL, tags


def _feature(
    dataset: Dataset, name: str, spec: FeatureSpec, classes: Mapping[str, Sequence[str]]
) -> Mapping[str, Any]:
    """Return a feature as TensorFlow Datasets declares it."""
    if is_image(name):
        shape = {"dimensions": ["-1", "-1", str(features.RAW_CHANNELS)]}
        return _typed("image_feature.Image", "image", {"shape": shape, "dtype": "uint8"})
    if spec.dtype not in LIST_DTYPES:  # an array as bytes
        return _tensor(spec, spec.shape or (), "bytes")
    each = _tensor(spec, (), "none")
    if name in classes:
        numbers = {"numClasses": str(len(classes[name]))}
        each = _typed("class_label_feature.ClassLabel", "classLabel", numbers)
    elif spec.dtype == "bytes":
        each = _typed("text_feature.Text", "text", {})
    if spec.shape is None or _may_lack(dataset, name, spec):
        return _typed("sequence_feature.Sequence", "sequence", {"feature": each, "length": "-1"})
    return each if spec.shape == () else _tensor(spec, spec.shape, "none")


def _may_lack(dataset: Dataset, name: str, spec: FeatureSpec) -> bool:
    if name in label_features(dataset):
        return any(split.unlabelled for split in dataset.splits.values())
    prefix, _, part = name.rpartition("/")
    is_side = part in _ALWAYS_THERE and f"{prefix}/encoded" in stored_features(dataset)
    return spec.default is not None and not is_side


def _tensor(spec: FeatureSpec, shape: Sequence[int], encoding: str) -> Mapping[str, Any]:
    dtype = "string" if spec.dtype == "bytes" else spec.dtype
    sides = {"dimensions": [str(side) for side in shape]} if shape else {}
    kind = "tensor_feature.Tensor" if shape else "scalar.Scalar"
    return _typed(kind, "tensor", {"shape": sides, "dtype": dtype, "encoding": encoding})


def _typed(kind: str, key: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"pythonClassName": f"{_MODULE}.{kind}", key: values}


def _info(
    dataset: Dataset, splits: Mapping[str, Split], file_format: str, template: str
) -> Mapping[str, Any]:
    found: dict[str, Any] = {
        # A name of a module of Python, as TensorFlow Datasets asks for.
        "name": re.sub(r"[^a-z0-9]+", "_", dataset_name(dataset).lower()).strip("_") or "dataset",
        "version": "1.0.0",
        "description": f"Digest {dataset.digest}",
        "fileFormat": file_format,
        "splits": [
            {
                "name": name,
                "shardLengths": [str(shard.examples) for shard in split.shards],
                "numBytes": str(split.bytes),
                "filepathTemplate": template,
            }
            for name, split in splits.items()
        ],
    }
    stored = stored_features(dataset)
    inputs = [name for name in stored if is_image(name) or name == features.TEXT]
    number = label_features(dataset)[1]
    is_label = number not in (None, features.IMAGE_OBJECT_LABEL, features.ENTITY_LABEL)
    if len(inputs) == 1 and is_label and not _may_lack(dataset, str(number), stored[str(number)]):
        items = [{"featureKey": name} for name in (inputs[0], number)]
        found["supervisedKeys"] = {"tuple": {"items": items}}
    return found


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
