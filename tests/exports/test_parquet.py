"""`export parquet`: the columns of all tasks, their types as Hugging Face's datasets names them."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import recordgen
from recordgen.registry import OWN
from tests.conftest import convert_lines
from tests.exports.copies import export


def _class(*names):
    return {"names": list(names), "_type": "ClassLabel"}


def _value(dtype):
    return {"dtype": dtype, "_type": "Value"}


def _several(feature):
    return {"feature": feature, "_type": "Sequence"}


TEXT, INT, FLOAT = _value("string"), _value("int64"), _value("float32")
IMAGE = {"_type": "Image"}
DIGITS = _class(*"0123456789")
TOPICS = _class("food", "place", "price", "service")
TAGS = _class("O", *(f"{at}-{name}" for name in ("city", "date", "person") for at in "BI"))
CITIES = _class("city", "date", "person")

COLUMNS = {
    "image_classification": {"image": IMAGE, "source_id": TEXT, "label": DIGITS},
    "image_multi_label": {"image": IMAGE, "source_id": TEXT, "labels": _several(DIGITS)},
    "object_detection": {
        **{"image": IMAGE, "width": INT, "height": INT, "source_id": TEXT},
        "objects": [{"bbox": _several(FLOAT), "category": DIGITS}],
    },
    "image_segmentation": {
        **{"image": IMAGE, "source_id": TEXT, "mask": IMAGE, "mask_source_id": TEXT},
        "classes": _several(_class(*"012")),
    },
    "text_classification": {"text": TEXT, "source_id": TEXT, "label": TOPICS},
    "text_multi_label": {"text": TEXT, "source_id": TEXT, "labels": _several(TOPICS)},
    "text_sentiment": {"text": TEXT, "source_id": TEXT, "label": _class(*"01234")},
    "text_entities": {
        **{"text": TEXT, "source_id": TEXT, "tokens": _several(TEXT), "ner_tags": _several(TAGS)},
        "entities": [{"start": INT, "end": INT, "label": CITIES}],
    },
    "video_classification": {
        **{"video": TEXT, "source_id": TEXT, "start": FLOAT, "end": FLOAT},
        "label": _class("left", "right"),
    },
    "declared": {
        **{"day": IMAGE, "day_source_id": TEXT, "night": IMAGE, "night_source_id": TEXT},
        **{"note": TEXT, "usual": INT, "verdict": _class("less", "more")},
    },
    "tabular": {
        **{"alcohol": FLOAT, "magnesium": INT},
        "cultivar": _class("barbera", "barolo", "grignolino"),
    },
}


def declared(table):
    return json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]


@pytest.mark.parametrize("task", OWN)
def test_columns_of_each_task(task, sample, tmp_path):
    """Their types are in the schema's metadata, and each record is a row of its split."""
    out = sample(task)
    export("parquet", out, tmp_path / "to")
    dataset = recordgen.read_dataset(str(out))
    words = {"eval": "validation"}
    names = {f"{words.get(name, name)}-00000-of-00001.parquet" for name in dataset.splits}
    assert {path.name for path in (tmp_path / "to/data").iterdir()} == names
    for name, split in dataset.splits.items():
        table = pq.read_table(tmp_path / f"to/data/{words.get(name, name)}-00000-of-00001.parquet")
        found = declared(table)
        assert list(found) == table.column_names
        names = found.get("label", {}).get("names", ())
        if names:
            texts = [None if at is None else names[at] for at in table["label"].to_pylist()]
            assert table[(repeated := "label_text")].to_pylist() == texts
            assert found.pop(repeated) == TEXT
        assert {key: found[key] for key in COLUMNS[task]} == COLUMNS[task]
        assert len(found) == len(COLUMNS[task]) or task == "tabular"
        assert len(table) == split.examples
        assert all(column.null_count < len(table) for column in table.columns)


def test_a_hundred_images_are_a_row_group(tmp_path):
    """A hundred images are a group, stored as they are; other values are compressed."""
    rows = ({"image/encoded": b"\x89PNG" + bytes([n % 256]), "n": n} for n in range(250))
    recordgen.write(rows, tmp_path / "out", shards=1)
    export("parquet", tmp_path / "out", tmp_path / "to")
    [path] = (tmp_path / "to/data").iterdir()
    found = pq.ParquetFile(path).metadata
    groups = [found.row_group(at) for at in range(found.num_row_groups)]
    assert [group.num_rows for group in groups] == [100, 100, 50]
    kinds = {groups[0].column(at).path_in_schema: groups[0].column(at) for at in range(3)}
    assert kinds["image.bytes"].compression == "UNCOMPRESSED"
    assert kinds["image.bytes"].statistics is None
    assert kinds["n"].compression == "SNAPPY"
    assert kinds["n"].statistics.max == 99


def test_unlabelled_is_null(tmp_path):
    """A gap is null, not -1 and not the empty text."""
    lines = ["TRAIN,good day,a", "TRAIN,bad day,"]
    out = convert_lines(tmp_path, lines, task="text_classification")
    export("parquet", out, tmp_path / "to")
    rows = pq.read_table(next((tmp_path / "to/data").iterdir())).to_pylist()
    assert {row["text"]: row["label"] for row in rows} == {"good day": 0, "bad day": None}


def test_examples_from_python(tmp_path):
    """Arrays are nested lists, and bytes of an unknown kind stay bytes."""
    examples = [
        {
            "pixels": np.arange(6, dtype="uint8").reshape(2, 3),
            "shares": np.float32([[0.5, 1], [2, 3]]),
            "blob": b"\xff\x00",
            "ids": [1, 2, 3][: at + 1],
            "flags": np.array([True, False]),
            "halves": np.array([0.5], np.float16),
        }
        for at in range(2)
    ]
    recordgen.write(examples, tmp_path / "out", shards=1)
    export("parquet", tmp_path / "out", tmp_path / "to")
    table = pq.read_table(next((tmp_path / "to/data").iterdir()))
    assert declared(table) == {
        "pixels": _several(_several(_value("uint8"))),
        "shares": _several(_several(FLOAT)),
        "blob": _value("binary"),
        "ids": _several(INT),
        "flags": _several(_value("bool")),
        "halves": _several(FLOAT),
    }
    rows = sorted(table.to_pylist(), key=lambda row: len(row["ids"]))
    assert rows[0] == {
        "pixels": [[0, 1, 2], [3, 4, 5]],
        "shares": [[0.5, 1], [2, 3]],
        "blob": b"\xff\x00",
        "ids": [1],
        "flags": [True, False],
        "halves": [0.5],
    }
