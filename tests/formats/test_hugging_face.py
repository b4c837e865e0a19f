"""Hugging Face's imagefolder: labels, several labels, boxes, and columns that would be lost."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordgen.errors import SourceError
from tests.formats.sources import json_lines

# the first record, what the message names
UNCLEAR = [
    ({"text": "a cat"}, "file_name .*text"),
    ({"label": "cat", "category": "pet"}, "label.*category"),
    ({"label": "cat", "bbox": [1, 2, 3, 4]}, "bbox"),
]
GEMINI = {"file_name": "a.png", "objects": {"box_2d": [[1, 2, 3, 4]], "label": ["cat"]}}


@pytest.mark.parametrize(("record", "words"), UNCLEAR)
def test_columns_that_are_unclear_stop(record, words, outcome):
    """Nothing is guessed, and the remedy works."""
    files = {"metadata.jsonl": json_lines({"file_name": "a.png", **record})}
    with pytest.raises(SourceError, match=words) as caught:
        outcome(files, "a.png")
    assert "path=file_name,label=" in str(caught.value)
    columns = f"path=file_name,label={next(iter(record))}"
    options = {"task": "image_classification", "columns": columns}
    assert len(outcome({}, document="metadata.jsonl", **options).rows) == 1


def test_boxes_of_gemini_are_named(outcome):
    """No remedy reads them, so none is named."""
    with pytest.raises(SourceError, match="Gemini"):
        outcome({"metadata.jsonl": json_lines(GEMINI)}, "a.png")


def test_an_image_of_another_split_is_no_substitute(outcome):
    """Paths are exact: the image of this name in test must not become one of train."""
    records = ({"file_name": f"{name}.png", "label": "cat"} for name in "ab")
    found = outcome({"train/metadata.jsonl": json_lines(*records)}, "train/a.png", "test/b.png")
    assert found.rejected == {"train/b.png": "missing_file"}
    assert [*found.images] == ["train/a.png"]


def test_metadata_in_parquet(tmp_path, make_pictures, outcome):
    """Numbers have the names that the schema declares."""
    make_pictures("a.png", "b.png", size=(80, 40))
    objects = [[{"bbox": [8, 4, 8, 4], "category": 1}], []]
    label = {"names": ["cat", "dog"], "_type": "ClassLabel"}
    features = {"objects": {"category": label, "bbox": {"_type": "List"}}}
    table = pa.table({"file_name": ["a.png", "b.png"], "objects": objects})
    schema = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(table.replace_schema_metadata(schema), tmp_path / "in/metadata.parquet")
    found = outcome({})
    assert found.classes == ("cat", "dog")
    assert found.images == {"a.png": [("dog", [0.1, 0.1, 0.2, 0.2])], "b.png": []}


def test_a_size_behind_a_large_profile(tmp_path, make_pictures, outcome):
    """Cameras write more than 64 KiB before the size."""
    make_pictures("a.jpg", size=(80, 40))
    data = (tmp_path / "in/a.jpg").read_bytes()
    segment = b"\xff\xe2" + (65_000).to_bytes(2, "big") + bytes(64_998)
    objects = {"bbox": [[8, 4, 8, 4]], "categories": ["cat"]}
    document = json_lines({"file_name": "a.jpg", "objects": objects})
    found = outcome({"a.jpg": data[:2] + 2 * segment + data[2:], "metadata.jsonl": document})
    assert found.images == {"a.jpg": [("cat", [0.1, 0.1, 0.2, 0.2])]}


# the line of 3.png
BROKEN = ("{i}.png,ca\0t", "{i}.png," + "x" * 300_000, '{i}.png,"cat', "{i}.png", "{i}.png,a,b")


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("closes", ["", '"'])
def test_a_broken_line_of_a_csv_costs_no_other(broken, closes, outcome):
    """A quote that is never closed, or by a later line, swallows no rows."""
    rows = [f"{i}.png,dog{closes * (i == 9)}" for i in range(12)]
    rows[3] = broken.format(i=3)
    text = "".join(f"{row}\n" for row in ["file_name,label", *rows])
    found = outcome({"metadata.csv": text}, *(f"{i}.png" for i in range(12)))
    rejected = {item.line for item in found.rejects}
    assert rejected == {5} or closes
    width = [item.message for item in found.rejects if item.code == "too_many_fields"]
    assert ["quote" in message for message in width] == [broken.count(",") > 1] * len(width)
    assert len(found.images) + len(rejected) == 12
    assert "3.png" not in found.images


def test_bad_lines_are_rejects(outcome):
    """Each names its line."""
    records = [{"file_name": f"{name}.png", "label": "cat"} for name in ("a", "none")]
    text = json_lines(*records, {"label": "cat"}) + '{"file_name": "b.png"\n'
    found = outcome({"metadata.jsonl": text}, "a.png", "b.png")
    codes = [(item.line, item.code) for item in found.rejects]
    assert codes == [(2, "missing_file"), (3, "bad_annotation"), (4, "bad_line")]
