# ruff: noqa: E501 - tables with a case on each line
"""Import files whose columns differ, such as a test set without labels: the remedy works."""

from pathlib import Path

import pytest
from PIL import Image

import recordgen
from recordgen.errors import NotUnderstoodError
from tests.formats.sources import Reading, refusal

ROWS = 24

# By name: the header and a line of each file. {n} is the line's number, {c} its class.
TABLE = {"train.csv": ("Id,area,price", "{n},{n}.5,{n}00"), "test.csv": ("Id,area", "{n},{n}.5")}
PAIRS = {
    "table": TABLE,
    "table, train first": {"1_train.csv": TABLE["train.csv"], "2_test.csv": TABLE["test.csv"]},
    "texts": {"train.csv": ("id,text,label", "{n},Good and cheap {n}.,{c}"), "test.csv": ("id,text", "{n},Good and cheap {n}.")},
    "texts in a table": {"train.csv": ("id,place,text,target", "{n},York,Good and cheap {n}.,{c}"), "test.csv": ("id,place,text", "{n},York,Good and cheap {n}.")},
    "images": {"train.csv": ("image_id,label,width", "{n}.png,{c},9"), "test.csv": ("image_id,width", "{n}.png,9")},
    "images with predictions": {"train.csv": ("image_id,label", "{n}.png,{c}"), "test.csv": ("image_id", "{n}.png"), "sample_submission.csv": ("image_id,label", "{n}.png,cat")},
    "table with predictions": {"strain.csv": TABLE["train.csv"], "gender_submission.csv": ("Id,price", "{n},0")},
}  # fmt: skip


def written(folder, files):
    if any("image_id" in header for header, _ in files.values()):
        for number in range(ROWS):
            for name, blue in ((f"{number}.png", 0), (f"{number}t.png", 90)):
                Image.new("RGB", (9, 9), (number, 9, blue)).save(folder / name)
    for name, (header, line) in files.items():
        rows = [line.format(n=n, c="cat" if n % 2 else "dog") for n in range(ROWS)]
        if name == "test.csv":  # other images and texts than those of train
            rows = [row.replace("Good", "Bad").replace(".png", "t.png") for row in rows]
        (folder / name).write_text("\n".join([header, *rows]) + "\n")
    return f"{folder}/*.csv"


def proposed(source):
    try:
        recordgen.check(source)
    except NotUnderstoodError as exc:
        return exc.options
    return {}


@pytest.mark.parametrize("name", sorted(PAIRS.keys() - {"images"}))
def test_the_file_with_labels_can_be_converted_alone(name, tmp_path):
    """The message names the file with all columns, and that file gives an example per row."""
    found = refusal(recordgen.check, written(tmp_path, PAIRS[name]))
    path = found.source
    options = found.options or proposed(path)  # of a table, the columns are asked for next
    assert Path(path).name.endswith("train.csv")
    result = recordgen.check(path, **options)
    assert (result.dataset.examples, list(result.rejects)) == (ROWS, [])


@pytest.mark.parametrize(("name", "columns"), [("texts", "text=text"), ("images", "")])
def test_rows_without_labels_can_be_read_beside_others(name, columns, tmp_path):
    """The option that names the payload keeps the labels of one file, and reads the other."""
    found = recordgen.check(written(tmp_path, PAIRS[name]), columns=columns).dataset
    assert {split: sum(item.labels.values()) for split, item in found.splits.items()} == {
        "train": ROWS,
        "test": 0,
    }


@pytest.mark.parametrize("others", [["-1", "0"], ["1", "3+"]])
def test_files_that_share_a_label_have_the_same_classes(others, tmp_path):
    """Numbers beside other numbers, or beside a name such as 3+, are no mixture."""
    files = {"train.csv": ["0", "1"], "test.csv": others}
    for name, labels in files.items():
        rows = [f'"Good, {label}",{label}' for label in labels]
        (tmp_path / name).write_text("\n".join(["text,label", *rows]))
    assert len(Reading(f"{tmp_path}/*.csv").rows) == 4


def test_files_of_splits_without_a_header_are_read_together(tmp_path):
    """RetinaNet's CSV of each split: the options that the message names read all of them."""
    boxes = {
        f"{at}.csv": (f"{at}.png,1,2,5,6,cat", "{n}.png,1,2,5,6,dog") for at in ("train", "test")
    }
    source = written(tmp_path, boxes)
    found = refusal(recordgen.check, source)
    result = recordgen.check(found.source or source, max_reject_fraction=1, **found.options)
    assert result.dataset.rows.read == 2 * (ROWS + 1)


def test_a_file_without_labels_is_read_with_the_others(tmp_path):
    """The column of its texts is proposed for all files, of which the others keep their labels."""
    files = {"train.csv": ("text,label", "Good {n}.,{c}"), "test.csv": ("id,text", "{n},Fine {n}.")}
    source = written(tmp_path, files)
    found = refusal(recordgen.check, source)
    assert (found.source, found.options) == ("", {"columns": "text=text"})  # all of them
    [train, test] = recordgen.check(source, **found.options).dataset.splits.values()
    assert (sum(train.labels.values()), test.unlabelled) == (ROWS, ROWS)
    files = {"a.csv": files["test.csv"], "b.csv": ("text,note", "Fine {n}.,x{n}")}
    (tmp_path / "others").mkdir()
    options = refusal(recordgen.check, written(tmp_path / "others", files)).options
    assert options == {"columns": "text=text", "labels": "none"}


def test_columns_in_another_order_stop(tmp_path):
    """Tables are joined by position, so their columns must have one order."""
    files = {"a_train.csv": ("age,area", "{n},1.5"), "b_test.csv": ("area,age", "1.5,{n}")}
    assert "order" in refusal(recordgen.check, written(tmp_path, files)).reason
