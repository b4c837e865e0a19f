"""Copies as their own libraries read them: Hugging Face's datasets, webdataset, array_record."""

import io
import json

import datasets
import pytest
import webdataset
from array_record.python.array_record_module import ArrayRecordReader
from PIL import Image

import recordgen
from recordgen.core.records.example import parse_example
from recordgen.exports import ExportOptions
from recordgen.registry import EXPORTS

LABELS = ["daisy", "rose"]


@pytest.fixture(scope="module")
def copies(photos, tmp_path_factory):
    """Return a folder with a copy of each kind of the photos, and the place for a cache."""
    folder = tmp_path_factory.mktemp("copies")
    for name in ("parquet", "webdataset", "arrayrecord", "folder"):
        export(name, photos, folder / name)
    return folder


def export(name, out, to):
    EXPORTS[name]().export(str(out), ExportOptions(to=str(to)))


def splits_of(out):
    return {name: recordgen.source(out, name) for name in recordgen.read_dataset(out).splits}


def pixels(record):
    return Image.open(io.BytesIO(record["image/encoded"])).convert("RGB").tobytes()


def test_parquet_in_datasets(photos, copies):
    """Images are decoded, classes have names, and splits are found by the names of files."""
    cache = str(copies / "cache")
    found = datasets.load_dataset(str(copies / "parquet"), cache_dir=cache)
    assert list(found) == ["train", "validation", "test"]
    assert found["train"].features["label"].names == LABELS
    records = splits_of(photos)["train"]
    assert len(found["train"]) == len(records)
    for row, record in zip(found["train"], records, strict=True):
        assert row["image"].tobytes() == pixels(record)
        assert row["label"] == record["image/class/label"]
    files = {"train": str(copies / "parquet/data/train-*.parquet")}
    streamed = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
    assert next(iter(streamed))["label"] == records[0]["image/class/label"]
    named = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=cache)
    assert named.features == found["train"].features


def test_boxes_in_datasets(tmp_path):
    """A list of structs with named classes; an image without boxes has an empty list."""
    Image.new("RGB", (40, 20), (9, 99, 199)).save(tmp_path / "a.png")
    Image.new("RGB", (40, 20), (99, 9, 199)).save(tmp_path / "b.png")
    lines = "TRAIN,a.png,cat,0.25,0.1,,,0.5,0.9,,\nTRAIN,b.png,,,,,,,,,\n"
    (tmp_path / "boxes.csv").write_text(lines)
    recordgen.convert(str(tmp_path / "boxes.csv"), tmp_path / "out", task="object_detection")
    export("parquet", tmp_path / "out", tmp_path / "to")
    found = datasets.load_dataset(f"{tmp_path}/to", split="train", cache_dir=f"{tmp_path}/c")
    objects = {row["source_id"]: row["objects"] for row in found}
    assert objects == {"a.png": [{"bbox": [10, 2, 10, 16], "category": 0}], "b.png": []}
    assert found.features["objects"].feature["category"].names == ["cat"]


def test_class_folders_in_datasets(photos, copies):
    """Hugging Face's datasets reads exported class folders split by split."""
    places = {"data_dir": str(copies / "folder"), "cache_dir": str(copies / "cache")}
    found = datasets.load_dataset("imagefolder", **places)
    words = {"eval": "validation"}
    expected = {words.get(name, name): len(split) for name, split in splits_of(photos).items()}
    assert {name: len(split) for name, split in found.items()} == expected
    assert found["train"].features["label"].names == LABELS


def test_tars_in_webdataset(photos, copies):
    """Samples in order, with the pixels, the number of the class, and the values as JSON."""
    files = sorted(map(str, (copies / "webdataset").glob("train-*.tar")))
    assert len(files) > 1
    found = webdataset.WebDataset(files, shardshuffle=False).decode("pil")
    for sample, record in zip(found, splits_of(photos)["train"], strict=True):
        assert sample["jpg"].tobytes() == pixels(record)
        assert sample["cls"] == sample["json"]["label"] == record["image/class/label"]


def test_arrayrecord_in_its_library(photos, copies, tmp_path):
    """Each record is the example of the shard, byte for byte; two runs write equal files.

    A list that a record lacks is empty: TensorFlow Datasets finds all lists in a record.
    """
    lists = [{"ids": [n] * n, "words": ["a"] * n} for n in range(2)]
    recordgen.write(lists, tmp_path / "lists", shards=1)
    export("arrayrecord", tmp_path / "lists", tmp_path / "of-lists")
    [file] = (tmp_path / "of-lists").glob("train.array_record-*")
    found = sorted(map(parse_example, ArrayRecordReader(str(file)).read_all()), key=str)
    assert found == [{"ids": [1], "words": [b"a"]}, {"ids": [], "words": []}]
    export("arrayrecord", photos, tmp_path / "again")
    shards = splits_of(photos)["train"]
    count = 0
    for file in sorted((copies / "arrayrecord").glob("train.array_record-*")):
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
        reader = ArrayRecordReader(str(file))
        for data in reader.read_all():
            [image] = parse_example(data)["image/encoded"]
            assert image == bytes(shards[count]["image/encoded"])
            count += 1
        reader.close()
    assert count == len(shards)
    info = json.loads((copies / "arrayrecord/dataset_info.json").read_text())
    assert info["fileFormat"] == "array_record"
    templates = {split["filepathTemplate"] for split in info["splits"]}
    assert templates == {"{SPLIT}.array_record-{SHARD_X_OF_Y}"}
