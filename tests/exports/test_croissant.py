"""croissant.json is readable by mlcroissant, Croissant's own library."""

import hashlib
import json
from dataclasses import replace

import mlcroissant
import numpy as np
import pytest
from pyarrow import parquet as pq

from recordgen import read_dataset, write
from recordgen.cli import main
from recordgen.exports import Output
from recordgen.exports.descriptions import Croissant
from tests.conftest import convert_lines, write_noise
from tests.exports.conftest import KINDS

UNKNOWN = ("citeAs", "datePublished", "license", "version")


def load(output):
    return mlcroissant.Dataset(output / "croissant.json")


def records(output, record_set):
    """Return all records, with bytes as text and names without their record set."""
    return [
        {
            name.removeprefix(f"{record_set}/").removeprefix("feature/"): plain(value)
            for name, value in record.items()
        }
        for record in load(output).records(record_set)
    ]


def plain(value):
    if isinstance(value, (list, np.ndarray)):
        return [plain(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize("name", KINDS)
def test_it_is_valid_but_for_what_nobody_told_us(sample, name):
    """Nothing is invented: dates, licence and citation are missing."""
    issues = load(sample(name)).metadata.ctx.issues
    assert not issues.errors
    properties = [str(issue).split('"')[1].rpartition("/")[2] for issue in issues.warnings]
    assert sorted(properties) == sorted(UNKNOWN)


@pytest.mark.parametrize("name", KINDS)
def test_every_conversion_can_be_read_row_by_row(sample, name):
    """examples.parquet is readable row by row, also if a column has gaps."""
    found = records(sample(name), "rows")
    rows = pq.read_table(sample(name) / "examples.parquet").to_pylist()
    assert len(found) == len(rows) == read_dataset(str(sample(name))).examples
    has_images = "brightness" in found[0]
    assert has_images == (rows[0]["format"] is not None)
    for record, row in zip(found, rows, strict=True):
        expected = {column: row[column] for column in record}
        assert {column: none_of(value) for column, value in record.items()} == expected


def none_of(value):
    """Return None for pandas' nulls."""
    return None if value is None or value != value or value == "nan" else value


def test_a_folder_without_measures(tmp_path):
    """A dataset without measures of its images, and with some labels missing."""
    write_noise(tmp_path, range(2))
    lines = ["TRAIN,0.png,a", "TRAIN,1.png"]
    convert_lines(tmp_path, lines, lint="-ALL", check="none")
    found = records(tmp_path / "out", "rows")
    assert {none_of(item["annotation"]) for item in found} == {"a", None}
    assert [none_of(item["brightness"]) for item in found] == [None, None]
    assert [item["width"] for item in found] == [16, 16]
    (tmp_path / "1.png").write_bytes((tmp_path / "1.png").read_bytes()[:10])
    convert_lines(tmp_path, lines, check="none", overwrite=True)
    assert "width" not in records(tmp_path / "out", "rows")[0]


def test_splits_shards_and_labels_are_records(sample):
    """Each with its counts, its digest or its number, as in dataset.json."""
    output = sample("image_classification")
    dataset = read_dataset(str(output))
    splits = [(item["name"], item["url"], item["examples"]) for item in records(output, "splits")]
    assert splits == [
        ("train", "cr:TrainingSplit", dataset.splits["train"].examples),
        ("eval", "cr:ValidationSplit", dataset.splits["eval"].examples),
        ("test", "cr:TestSplit", dataset.splits["test"].examples),
    ]
    shards = [shard for split in dataset.splits.values() for shard in split.shards]
    assert [item["file"] for item in records(output, "shards")] == [item.file for item in shards]
    assert [item["digest"] for item in records(output, "shards")] == [it.digest for it in shards]
    labels = [(item["number"], item["name"]) for item in records(output, "labels")]
    assert labels == list(enumerate(dataset.labels))


def test_each_feature_is_a_field_of_its_type(sample):
    """Images, numbers and lists have Croissant's types, and lists their shape."""
    fields = {
        field.name: (str(field.data_types[0]).rpartition("/")[2], field.array_shape)
        for field in load(sample("object_detection")).metadata.record_sets[3].fields
    }
    assert fields["image/encoded"] == ("ImageObject", None)
    assert fields["image/height"] == ("Int64", None)
    assert fields["image/object/bbox/xmin"] == ("Float32", "-1")
    assert fields["split"] == ("Text", None)


def test_pixels_are_no_image_file(sample):
    """Raw pixels are not described as image files; their layout is described."""
    fields = load(sample("raw")).metadata.record_sets[3].fields
    [described] = [field for field in fields if field.name == "image/encoded"]
    assert str(described.data_types[0]).rpartition("/")[2] == "Text"
    assert "uint8 [height, width, 3]" in described.description
    dataset = read_dataset(str(sample("raw")))
    mixed = replace(dataset, options={**dataset.options, "encode": "mixed"})
    assert "image/format is raw" in Croissant().text(Output("none", mixed))


def test_files_have_their_sha256(sample):
    """The label files have their sha256; shards have their digest in a record set."""
    output = sample("object_detection")
    described = json.loads((output / "croissant.json").read_text())["distribution"]
    files = {item["contentUrl"]: item["sha256"] for item in described if "contentUrl" in item}
    assert set(files) == {"labels.txt", "label_map.pbtxt"}
    for name, digest in files.items():
        assert hashlib.sha256((output / name).read_bytes()).hexdigest() == digest


def test_written_examples_are_described(tmp_path):
    """A split with its own name, compressed shards and arrays; the export gives the same bytes."""
    examples = [{"raw": b"\xff", "array": np.zeros((2, 3), np.uint8), "ids": [1, 2]}] * 2
    write(examples, tmp_path, split="holdout", compression="gzip", shards=1)
    before = (tmp_path / "croissant.json").read_bytes()
    assert main(["export", "croissant", str(tmp_path)]) == 0
    assert (tmp_path / "croissant.json").read_bytes() == before
    assert records(tmp_path, "splits")[0].keys() == {"name", "examples", "bytes"}
    fields = {field.name: field for field in load(tmp_path).metadata.record_sets[2].fields}
    assert fields["array"].array_shape_tuple == (2, 3)


def test_a_long_vocabulary_stays_in_its_file(sample):
    """Up to 10,000 labels are records of the description."""
    dataset = read_dataset(str(sample("image_classification")))
    for count, is_there in ((10_000, True), (10_001, False)):
        many = replace(dataset, labels=tuple(map(str, range(count))))
        described = json.loads(Croissant().text(Output("none", many)))
        assert ("labels" in [item["@id"] for item in described["recordSet"]]) == is_there
