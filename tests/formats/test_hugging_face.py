"""Hugging Face's imagefolder: labels, several labels, boxes, and columns that would be lost."""

import json
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordgen
from recordgen.errors import RecordgenError, SourceError
from tests.conftest import stored_examples
from tests.formats.boxes import boxes_of


def write(path, *records):
    """Write lines of JSON, and return the folder ``in``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def labels_of(output):
    """Return the split and the labels of each image."""
    return {
        example["image/source_id"][0].decode(): (
            split,
            [text.decode() for text in example.get("image/class/text", ())],
        )
        for split, example in stored_examples(output)
    }


def test_labels_of_two_splits(tmp_path, make_pictures):
    """Names of folders are splits; numbers stay numbers."""
    make_pictures("train/a.png", "train/b.png", "test/c.png")
    for split, names in (("train", "ab"), ("test", "c")):
        write(
            tmp_path / f"in/{split}/metadata.jsonl",
            *({"file_name": f"{name}.png", "label": "abc".index(name)} for name in names),
        )
    dataset = recordgen.convert(str(tmp_path / "in"), tmp_path / "out").dataset
    assert (dataset.task, dataset.options["format"]) == (
        "image_classification",
        "hugging_face",
    )
    assert labels_of(tmp_path / "out") == {
        "train/a.png": ("train", ["0"]),
        "train/b.png": ("train", ["1"]),
        "test/c.png": ("test", ["2"]),
    }


def test_csv_and_lists(tmp_path, make_pictures):
    """A CSV has one label; a list of JSON has several."""
    make_pictures("a.png", "b.png")
    (tmp_path / "in/metadata.csv").write_text("file_name,label\na.png,cat\nb.png,\n")
    recordgen.convert(str(tmp_path / "in"), tmp_path / "one")
    found = labels_of(tmp_path / "one")
    assert (found["a.png"][1], found["b.png"][1]) == (["cat"], [])
    (tmp_path / "in/metadata.csv").unlink()
    write(tmp_path / "in/metadata.jsonl", {"file_name": "a.png", "labels": ["dog", "cat"]})
    recordgen.convert(str(tmp_path / "in"), tmp_path / "two")
    assert labels_of(tmp_path / "two")["a.png"][1] == ["cat", "dog"]


def test_boxes(tmp_path, make_pictures):
    """Objects are COCO's boxes in pixels, of the size that the image has."""
    make_pictures("train/a.png", size=(80, 40))
    objects = {"bbox": [[8, 4, 8, 4], [0, 0, 80, 40]], "categories": [1, 0]}
    write(tmp_path / "in/train/metadata.jsonl", {"file_name": "a.png", "objects": objects})
    recordgen.convert(str(tmp_path / "in"), tmp_path / "out")
    assert boxes_of(tmp_path / "out")["train/a.png"][1] == [
        ("0", 0, [0, 0, 1, 1]),
        ("1", 1, [0.1, 0.1, 0.2, 0.2]),
    ]


# the first record, what the message names
UNCLEAR = [
    ({"text": "a cat"}, "file_name .*text"),
    ({"label": "cat", "category": "pet"}, "label.*category"),
    ({"label": "cat", "mask_file_name": "b.png"}, "mask_file_name"),
    ({"label": "cat", "bbox": [1, 2, 3, 4]}, "bbox"),
]


@pytest.mark.parametrize(("record", "words"), UNCLEAR)
def test_columns_that_are_unclear_stop(record, words, tmp_path, make_pictures):
    """Nothing is guessed, and the remedy works."""
    make_pictures("a.png")
    path = write(tmp_path / "in/metadata.jsonl", {"file_name": "a.png", **record})
    with pytest.raises(SourceError, match=words) as caught:
        recordgen.plan(str(tmp_path / "in"))
    assert "path=file_name,label=" in str(caught.value)
    [label] = [*record][:1]
    plan = recordgen.plan(
        str(path), task="image_classification", columns=f"path=file_name,label={label}"
    )
    assert plan.rows == 1


def test_an_image_of_another_split_is_no_substitute(tmp_path, make_pictures):
    """Paths are exact: the image of this name in test must not become one of train."""
    make_pictures("train/a.png", "test/b.png")
    records = ({"file_name": f"{name}.png", "label": "cat"} for name in "ab")
    write(tmp_path / "in/train/metadata.jsonl", *records)
    result = recordgen.convert(str(tmp_path / "in"), tmp_path / "out", max_reject_fraction=1)
    assert [(item.uri, item.code) for item in result.rejects] == [("train/b.png", "missing_file")]
    assert list(labels_of(tmp_path / "out")) == ["train/a.png"]


def test_metadata_in_parquet(tmp_path, make_pictures):
    """Numbers have the names that the schema declares."""
    make_pictures("a.png", "b.png", size=(80, 40))
    objects = [[{"bbox": [8, 4, 8, 4], "category": 1}], []]
    label = {"names": ["cat", "dog"], "_type": "ClassLabel"}
    features = {"objects": {"category": label, "bbox": {"_type": "List"}}}
    table = pa.table({"file_name": ["a.png", "b.png"], "objects": objects})
    schema = {"huggingface": json.dumps({"info": {"features": features}})}
    path = tmp_path / "in/metadata.parquet"
    pq.write_table(table.replace_schema_metadata(schema), path)
    dataset = recordgen.convert(str(tmp_path / "in"), tmp_path / "out").dataset
    assert dataset.labels == ("cat", "dog")
    boxes = {uri: found for uri, (_, found) in boxes_of(tmp_path / "out").items()}
    assert boxes == {"a.png": [("dog", 1, [0.1, 0.1, 0.2, 0.2])], "b.png": []}


def test_a_size_behind_a_large_profile(tmp_path, make_pictures):
    """Cameras write more than 64 KiB before the size."""
    make_pictures("a.jpg", size=(80, 40))
    path = tmp_path / "in/a.jpg"
    data = path.read_bytes()
    segment = b"\xff\xe2" + (65_000).to_bytes(2, "big") + bytes(64_998)
    path.write_bytes(data[:2] + 2 * segment + data[2:])
    objects = {"bbox": [[8, 4, 8, 4]], "categories": ["cat"]}
    write(tmp_path / "in/metadata.jsonl", {"file_name": "a.jpg", "objects": objects})
    recordgen.convert(str(tmp_path / "in"), tmp_path / "out", check="none")
    assert boxes_of(tmp_path / "out")["a.jpg"][1] == [("cat", 0, [0.1, 0.1, 0.2, 0.2])]


def test_a_head_that_is_no_csv(tmp_path, make_pictures):
    """Python 3.10 does not read NUL in a CSV, later ones do: no version raises csv.Error."""
    make_pictures("cat/a.png")
    (tmp_path / "in/metadata.csv").write_bytes(b"file_name,label\n\0,\0\n")
    with suppress(RecordgenError):
        recordgen.plan(str(tmp_path / "in"))


def test_bad_lines_are_rejects(tmp_path, make_pictures):
    """Each names its line."""
    make_pictures("a.png", "b.png")
    path = write(
        tmp_path / "in/metadata.jsonl",
        {"file_name": "a.png", "label": "cat"},
        {"file_name": "none.png", "label": "cat"},
        {"label": "cat"},
    )
    with path.open("a") as file:
        file.write('{"file_name": "b.png"\n')
    result = recordgen.convert(str(tmp_path / "in"), tmp_path / "out", max_reject_fraction=1)
    assert [(item.line, item.code) for item in result.rejects] == [
        (2, "missing_file"),
        (3, "bad_annotation"),
        (4, "bad_annotation"),
    ]
