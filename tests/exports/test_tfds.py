"""`export tfds`: features.json and dataset_info.json as tensorflow_datasets 4.9 writes them.

The library was run by hand over the output of each task: its decoded examples were equal.
"""

import json

import numpy as np
import pytest

import recordgen
from recordgen.cli import main
from tests.conftest import ROOT, convert_lines
from tests.exports.copies import boxes, export
from tests.golden import NEEDED, SAMPLES

MODULE = "tensorflow_datasets.core.features"
TEXT = {"pythonClassName": f"{MODULE}.text_feature.Text", "text": {}}


def _class(count):
    numbers = {"numClasses": str(count)}
    return {"pythonClassName": f"{MODULE}.class_label_feature.ClassLabel", "classLabel": numbers}


def _several(feature):
    each = {"feature": feature, "length": "-1"}
    return {"pythonClassName": f"{MODULE}.sequence_feature.Sequence", "sequence": each}


def _scalar(dtype):
    tensor = {"shape": {}, "dtype": dtype, "encoding": "none"}
    return {"pythonClassName": f"{MODULE}.scalar.Scalar", "tensor": tensor}


IMAGE = {
    "pythonClassName": f"{MODULE}.image_feature.Image",
    "image": {"shape": {"dimensions": ["-1", "-1", "3"]}, "dtype": "uint8"},
}


def described(out):
    """Return the features and the info."""
    found = json.loads((out / "features.json").read_text())
    assert found["pythonClassName"] == f"{MODULE}.features_dict.FeaturesDict"
    return found["featuresDict"]["features"], json.loads((out / "dataset_info.json").read_text())


def test_boxes(tmp_path):
    """Every list is a sequence; the shards' lengths are those of dataset.json."""
    out = boxes(tmp_path)
    export("tfds", out)
    features, info = described(out)
    assert features == {
        "image/encoded": IMAGE,
        "image/format": TEXT,
        "image/height": _scalar("int64"),
        "image/width": _scalar("int64"),
        "image/source_id": TEXT,
        "image/key/sha256": TEXT,
        **{
            f"image/object/bbox/{side}": _several(_scalar("float32"))
            for side in ("xmin", "xmax", "ymin", "ymax")
        },
        "image/object/class/text": _several(TEXT),
        "image/object/class/label": _several(_class(3)),
    }
    names = out / "image.object.class.label.labels.txt"
    assert names.read_text() == "cat\ndog\nyes\n"
    splits = recordgen.read_dataset(str(out)).splits
    assert [split["name"] for split in info["splits"]] == list(splits)
    for split in info["splits"]:
        shards = splits[split["name"]].shards
        assert split["shardLengths"] == [str(shard.examples) for shard in shards]
        at, count = 0, len(shards)
        template = split["filepathTemplate"].replace("{SPLIT}", split["name"])
        first = template.replace("{SHARD_X_OF_Y}", f"{at:05d}-of-{count:05d}")
        assert first == shards[0].file
    assert (info["fileFormat"], info["name"]) == ("tfrecord", "labels")
    assert "supervisedKeys" not in info


def test_input_and_label(sample):
    """as_supervised=True gives pairs, if every example has a label."""
    for task, pair in (
        ("image_classification", ["image/encoded", "image/class/label"]),
        ("text_sentiment", ["text", "class/label"]),
        ("image_folder", None),
        ("declared", None),
    ):
        out = sample(task)
        export("tfds", out)
        features, info = described(out)
        keys = info.get("supervisedKeys", {}).get("tuple", {}).get("items")
        assert keys == (pair and [{"featureKey": name} for name in pair])
        if task == "declared":
            assert features["day/height"] == _scalar("int64")
            assert features["note"] == _several(TEXT)  # it may be missing
            assert features["verdict/label"] == _class(2)
        if task == "image_folder":
            assert features["image/class/label"] == _several(_scalar("int64"))


def test_a_mask_is_a_labelled_image(sample):
    """It has one channel, whose values have the names of the classes."""
    out = sample("image_segmentation")
    export("tfds", out)
    features, _ = described(out)
    image = {"shape": {"dimensions": ["-1", "-1", "1"]}, "dtype": "uint8", "useColormap": True}
    assert features["image/encoded"] == IMAGE
    assert features["image/segmentation/class/encoded"] == {
        "pythonClassName": f"{MODULE}.labeled_image.LabeledImage",
        "image": image | {"label": {"numClasses": "3"}},
    }
    names = out / "image.segmentation.class.encoded.labels.txt"
    assert names.read_text() == "0\n1\n2\n"


def test_arrays(tmp_path):
    """Arrays that are stored as bytes are tensors of bytes."""
    arrays = {"a": np.zeros((2, 3), "uint8"), "b": np.zeros(4, "float32")}
    recordgen.write([arrays], tmp_path / "out")
    export("tfds", tmp_path / "out")
    features, _ = described(tmp_path / "out")
    kind = f"{MODULE}.tensor_feature.Tensor"
    for name, sides, dtype, encoding in (
        ("a", ["2", "3"], "uint8", "bytes"),
        ("b", ["4"], "float32", "none"),
    ):
        shape = {"shape": {"dimensions": sides}, "dtype": dtype, "encoding": encoding}
        assert features[name] == {"pythonClassName": kind, "tensor": shape}


def test_images_of_columns_are_looked_at(out):
    """dataset.json has no formats of declared columns, so the records say them."""
    source = str(ROOT / "examples" / SAMPLES["declared"])
    recordgen.convert(source, out, encode="raw", lint="-ALL", **NEEDED["declared"])
    assert main(["export", "tfds", str(out)]) == 2
    assert not (out / "features.json").exists()


@pytest.mark.parametrize("how", ["overwrite", "append"])
def test_they_describe_one_state(how, tmp_path, out):
    """The next conversion into the same output removes them: lengths of shards would be wrong."""
    source = ROOT / "examples/text_classification/reviews.csv"
    lines = source.read_text().splitlines()
    convert_lines(tmp_path, lines[:60], lint="-ALL")
    export("tfds", out)
    assert (out / "dataset_info.json").exists()
    convert_lines(tmp_path, lines[60:], lint="-ALL", **{how: True})
    assert not (out / "dataset_info.json").exists()
    assert not (out / "features.json").exists()
