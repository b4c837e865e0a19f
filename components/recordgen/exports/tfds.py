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
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recordgen import features, storage
from recordgen.core.dataset.counts import Split
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.dataset.vocabulary import labels_text
from recordgen.core.task.annotation import is_image, label_files, stored_features
from recordgen.errors import UsageError
from recordgen.exports.beside import TFDS_FILES
from recordgen.exports.export import Export, Exported, ExportOptions
from recordgen.exports.image_files import image_formats
from recordgen.exports.output import Output
from recordgen.features import LIST_DTYPES, FeatureSpec
from recordgen.lineage.events import dataset_name
from recordgen.tables.stored import label_features

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
    refused = sorted(image_formats(output, splits) - {*_DECODED})
    if refused:
        called = "raw pixels" if refused[0] == features.RAW else f"{refused[0].upper()} images"
        raise UsageError(
            f"TensorFlow Datasets cannot declare {called}; convert with --encode jpeg or "
            f"--encode png"
        )


def write_files(
    output: Output, splits: Mapping[str, Split], folder: str, file_format: str, template: str
) -> Sequence[str]:
    """Write the files of some splits; return their paths.

    ``file_format`` is ``tfrecord`` or ``array_record``, ``template`` the path of a shard.
    """
    known = _Known.of(output.dataset)
    declared = {name: _feature(known, name, spec) for name, spec in known.stored.items()}
    head = {"pythonClassName": f"{_MODULE}.features_dict.FeaturesDict"}
    files = {
        f"{name.replace('/', '.')}.labels.txt": labels_text(names)
        for name, names in known.classes.items()
    }
    files[_FEATURES_FILE] = _json({**head, "featuresDict": {"features": declared}})
    files[_INFO_FILE] = _json(_info(known, splits, file_format, template))
    for name, text in files.items():
        storage.write_text(storage.inside(folder, name), text)
    return [storage.join(folder, name) for name in files]


class _Known(NamedTuple):
    """What holds for all features; it is found once, because it parses all columns of a table.

    Attributes:
        labels: the features with the text and the number of labels.
        classes: the names of the classes, by the feature of their numbers.
    """

    dataset: Dataset
    stored: Mapping[str, FeatureSpec]
    labels: tuple[str | None, str | None]
    classes: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, dataset: Dataset) -> _Known:
        stored, labels = stored_features(dataset), label_features(dataset)
        parts = (features.IMAGE_OBJECT_LABEL, features.ENTITY_LABEL, features.IMAGE_MASK_ENCODED)
        numbers = (labels[1], *parts)
        found = {name: dataset.labels for name in numbers if name in stored and dataset.labels}
        classes: dict[str, Sequence[str]] = {str(name): names for name, names in found.items()}
        tags = label_files(dataset).get("tags.txt", "").splitlines()
        if features.TAGS_LABEL in stored and tags:
            classes[features.TAGS_LABEL] = tags
        return cls(dataset, stored, labels, classes)

    def may_lack(self, name: str) -> bool:
        """Return whether a record may lack a feature."""
        if name in self.labels:
            return any(split.unlabelled for split in self.dataset.splits.values())
        prefix, _, part = name.rpartition("/")
        is_side = part in _ALWAYS_THERE and f"{prefix}/encoded" in self.stored
        return self.stored[name].default is not None and not is_side


def _feature(known: _Known, name: str, spec: FeatureSpec) -> Mapping[str, Any]:
    """Return a feature as TensorFlow Datasets declares it."""
    if is_image(name):
        is_mask = name == features.IMAGE_MASK_ENCODED
        shape = {"dimensions": ["-1", "-1", "1" if is_mask else str(features.RAW_CHANNELS)]}
        image: dict[str, Any] = {"shape": shape, "dtype": "uint8"}
        if is_mask and name in known.classes:
            label = {"numClasses": str(len(known.classes[name]))}
            image |= {"useColormap": True, "label": label}
            return _typed("labeled_image.LabeledImage", "image", image)
        return _typed("image_feature.Image", "image", image)
    if spec.dtype not in LIST_DTYPES:  # an array as bytes
        return _tensor(spec, spec.shape or (), "bytes")
    each = _tensor(spec, (), "none")
    if name in known.classes:
        numbers = {"numClasses": str(len(known.classes[name]))}
        each = _typed("class_label_feature.ClassLabel", "classLabel", numbers)
    elif spec.dtype == "bytes":
        each = _typed("text_feature.Text", "text", {})
    if spec.shape is None or known.may_lack(name):
        return _typed("sequence_feature.Sequence", "sequence", {"feature": each, "length": "-1"})
    return each if spec.shape == () else _tensor(spec, spec.shape, "none")


def _tensor(spec: FeatureSpec, shape: Sequence[int], encoding: str) -> Mapping[str, Any]:
    dtype = "string" if spec.dtype == "bytes" else spec.dtype
    sides = {"dimensions": [str(side) for side in shape]} if shape else {}
    kind = "tensor_feature.Tensor" if shape else "scalar.Scalar"
    return _typed(kind, "tensor", {"shape": sides, "dtype": dtype, "encoding": encoding})


def _typed(kind: str, key: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"pythonClassName": f"{_MODULE}.{kind}", key: values}


def _info(
    known: _Known, splits: Mapping[str, Split], file_format: str, template: str
) -> Mapping[str, Any]:
    dataset = known.dataset
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
    inputs = [name for name in known.stored if is_image(name) or name == features.TEXT]
    number = known.labels[1]
    is_label = number not in (None, features.IMAGE_OBJECT_LABEL, features.ENTITY_LABEL)
    if len(inputs) == 1 and is_label and not known.may_lack(str(number)):
        items = [{"featureKey": name} for name in (inputs[0], number)]
        found["supervisedKeys"] = {"tuple": {"items": items}}
    return found


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
