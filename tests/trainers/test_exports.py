"""Copies as their own libraries read them: Hugging Face's datasets, webdataset, array_record."""

from __future__ import annotations

import io
import json

import pytest
from PIL import Image

from recordgen.core.records import RECORDS
from tests.conftest import stored_examples
from tests.exports.copies import LABELS, boxes, export, labelled

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    return labelled(tmp_path_factory.mktemp("labelled"))


def _train(out):
    return [values for split, values in stored_examples(out) if split == "train"]


def _pixels(values):
    image = Image.open(io.BytesIO(values["image/encoded"][0]))
    return image.tobytes()


def test_parquet_with_datasets(classes, tmp_path):
    """Images are decoded, classes have names, and the splits are found by their files."""
    datasets = pytest.importorskip("datasets")
    export("parquet", classes, tmp_path / "to")
    found = datasets.load_dataset(str(tmp_path / "to"), cache_dir=str(tmp_path / "cache"))
    assert set(found) == {"train", "validation", "test"}
    files = {"train": str(tmp_path / "to/data/train-*.parquet")}
    named = datasets.load_dataset(
        "parquet", data_files=files, split="train", cache_dir=str(tmp_path / "cache")
    )
    assert named.features == found["train"].features
    assert named.features["label"].names == list(LABELS)
    for row, values in zip(named, _train(classes), strict=True):
        assert row["image"].tobytes() == _pixels(values)
        assert [row["label"]] == values["image/class/label"]


def test_boxes_with_datasets(tmp_path):
    """A list of structs, each with a named class; also streamed."""
    datasets = pytest.importorskip("datasets")
    out = boxes(tmp_path)
    export("parquet", out, tmp_path / "to")
    files = {"train": str(tmp_path / "to/data/train-*.parquet")}
    rows = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
    records = _train(out)
    count = 0
    for row, values in zip(rows, records, strict=True):
        numbers = list(values.get("image/object/class/label", ()))
        assert [each["category"] for each in row["objects"]] == numbers
        assert all(len(each["bbox"]) == 4 for each in row["objects"])
        count += 1
    assert count == len(records)


def test_class_folders_with_datasets(classes, tmp_path):
    datasets = pytest.importorskip("datasets")
    export("folder", classes, tmp_path / "to")
    found = datasets.load_dataset(
        "imagefolder", data_dir=str(tmp_path / "to"), cache_dir=str(tmp_path / "cache")
    )
    assert {name: len(split) for name, split in found.items()} == {
        **{"train": 8, "validation": 3, "test": 3},
    }
    assert found["train"].features["label"].names == list(LABELS)


def test_tars_with_webdataset(classes, tmp_path):
    webdataset = pytest.importorskip("webdataset")
    export("webdataset", classes, tmp_path / "to")
    files = sorted(str(path) for path in (tmp_path / "to").glob("train-*.tar"))
    found = list(webdataset.WebDataset(files, shardshuffle=False).decode("pil"))
    records = _train(classes)
    for sample, values in zip(found, records, strict=True):
        [number] = values["image/class/label"]
        assert sample["cls"] == number
        assert sample["json"]["label"] == number
        suffix = {"jpeg": "jpg"}.get(kind := values["image/format"][0].decode(), kind)
        if suffix != "bmp":  # the library decodes jpg, png and a few others
            image = Image.open(io.BytesIO(values["image/encoded"][0])).convert("RGB")
            assert sample[suffix].tobytes() == image.tobytes()


def test_arrayrecord_with_its_library(classes, tmp_path):
    """Each record is the example of the shard, byte for byte; two runs write equal files."""
    module = pytest.importorskip("array_record.python.array_record_module")
    for name in ("to", "again"):
        export("arrayrecord", classes, tmp_path / name)
    files = sorted((tmp_path / "to").glob("train.array_record-*"))
    found = []
    for file in files:
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
        reader = module.ArrayRecordReader(str(file))
        found += reader.read_all()
        reader.close()
    shards = sorted((classes / "Split-train").iterdir())
    assert found == [record for shard in shards for record in RECORDS.read(str(shard))]
    info = json.loads((tmp_path / "to/dataset_info.json").read_text())
    assert info["fileFormat"] == "array_record"
    assert {split["filepathTemplate"] for split in info["splits"]} == {
        "{SPLIT}.array_record-{SHARD_X_OF_Y}"
    }
