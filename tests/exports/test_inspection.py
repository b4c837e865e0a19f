"""`recordgen inspect`: records, matching examples with their findings, and their images."""

from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from recordgen import write
from recordgen.cli import main
from recordgen.errors import RecordError
from recordgen.exports.inspection import inspect
from recordgen.payloads.drawing import label_colour
from tests.conftest import convert_lines, encoded, noise


@pytest.fixture
def convert(tmp_path):
    """Return a function that converts lines about 2.png and others, which are 200 by 100."""
    for number in (0, 1, 3):
        image = Image.new("RGB", (200, 100), (90, 90, 90 + number))
        (tmp_path / f"{number}.png").write_bytes(encoded(image, "PNG"))
    (tmp_path / "2.png").write_bytes(encoded(noise(20, 10), "PNG"))

    return partial(convert_lines, tmp_path)


BOXES = [
    "TRAIN,0.png,cat,.1,.2,,,.5,.6,,",
    "TRAIN,0.png,dog,.5,.5,,,1,1,,",
    "TRAIN,0.png,dog,0,.7,,,.1,.9,,",
    "TRAIN,1.png,,,,,,,,,",
    "TRAIN,2.png,cat,0,0,,,1,1,,",
]


def lines_by_name(text):
    """Return the cells of a table's rows without the number, by source id."""
    rows = [line.split() for line in text.splitlines() if not line.startswith("wrote")]
    return {row[1]: row[2:] for row in rows[1:]}


def test_boxes_are_counted_by_label(convert, stdout_of, json_of, capsys):
    """The most frequent label first, at most four; JSON has all values, of one box as lists."""
    many = [f"TEST,3.png,c{number},0,0,,,1,1,," for number in range(9)]
    output = convert([*BOXES, *many])
    capsys.readouterr()
    text = stdout_of("inspect", output)
    assert text.splitlines()[0].split()[-3:] == ["boxes", "by", "label"]
    found = lines_by_name(text)
    assert found["0.png"][3:] == ["3", "2×", "dog,", "1×", "cat"]
    assert found["1.png"][3:] == ["0"]
    assert found["2.png"][3:] == ["1", "1×", "cat"]
    line = stdout_of("inspect", output, "--split", "test").splitlines()[1]
    assert line.endswith("9  1× c0, 1× c1, 1× c2, 1× c3, … 9 values")
    records = json_of("inspect", output)
    [one] = [record for record in records if record["image/source_id"] == "2.png"]
    assert {name: value for name, value in one.items() if "object" in name} == {
        **{f"image/object/bbox/{side}min": [0.0] for side in "xy"},
        **{f"image/object/bbox/{side}max": [1.0] for side in "xy"},
        "image/object/class/text": ["cat"],
        "image/object/class/label": [9],  # of c0 to c8 and cat
    }


def test_all_labels_of_an_image_are_shown(convert, tmp_path, stdout_of, json_of, capsys):
    """As text and JSON, by output or by files; images without boxes stay byte for byte."""
    output = convert(["TRAIN,0.png,dog,cat", "TRAIN,1.png,dog", "TRAIN,2.png"])
    for record in inspect(str(output), to=str(tmp_path / "seen")):
        source = tmp_path / record.features["image/source_id"].decode()
        assert Path(record.image_file or "").read_bytes() == source.read_bytes()
    capsys.readouterr()
    found = lines_by_name(stdout_of("inspect", output))
    assert found["0.png"][3:] == ["0,", "1", "cat,", "dog"]
    assert found["1.png"][3:] == ["1", "dog"]
    assert found["2.png"][3:] == []
    for named in (str(output), f"{output}/Split-train/*"):
        records = json_of("inspect", named)
        labels = {record["image/source_id"]: record.get("image/class/text") for record in records}
        assert labels == {"0.png": ["cat", "dog"], "1.png": ["dog"], "2.png": None}


def test_boxes_are_drawn_in_the_colour_of_their_label(convert, tmp_path):
    """Lines on the picture as it is stored; a picture without boxes is not encoded again."""
    records = inspect(str(convert(BOXES)), to=str(tmp_path / "seen"))
    files = {it.features["image/source_id"]: Path(it.image_file or "") for it in records}
    assert {path.suffix for path in files.values()} == {".png"}
    assert files[b"1.png"].read_bytes() == (tmp_path / "1.png").read_bytes()
    cat, dog = label_colour(0), label_colour(1)
    image = Image.open(files[b"0.png"])
    assert image.size == (200, 100)
    # The box of the cat covers columns 20 to 99 and rows 20 to 59.
    assert {image.getpixel((x, y)) for x in (20, 99) for y in range(20, 50)} == {cat}
    assert {image.getpixel((x, 59)) for x in range(40, 99)} == {cat}
    assert {image.getpixel((x, 99)) for x in range(100, 200)} == {dog}
    assert {image.getpixel((x, 89)) for x in range(20)} == {dog}
    assert image.getpixel((60, 40)) == (90, 90, 90)
    assert Image.open(files[b"2.png"]).getpixel((19, 9)) == cat


def test_an_undecodable_record_is_named(convert, tmp_path):
    """Nothing is written; without --to its features are shown."""
    (tmp_path / "0.png").write_bytes((tmp_path / "0.png").read_bytes()[:60])
    output = convert(BOXES[:1], check="none")
    words = r"-00001: record 0: cannot draw its boxes: the PNG .*; omit --to to see its"
    with pytest.raises(RecordError, match=words):
        inspect(str(output), to=str(tmp_path / "seen"))
    assert main(["inspect", str(output), "--to", str(tmp_path / "seen")]) == 1
    assert not (tmp_path / "seen").exists()
    assert main(["inspect", str(output)]) == 0


# features of an image that Recordgen did not write; words of the error
OTHERS = [
    ({"image/object/bbox/xmin": [0.5]}, "each box needs one value of each feature"),
    ({"image/encoded": 7}, "there is no image/encoded to extract"),
]


@pytest.mark.parametrize(("more", "words"), OTHERS)
def test_inconsistent_boxes_are_shown_and_not_drawn(more, words, tmp_path):
    """Records of other writers may hold anything."""
    output = str(tmp_path / "out")
    write([{"image/encoded": encoded(noise(), "PNG"), **more}], output)
    assert len(inspect(output)) == 1
    with pytest.raises(RecordError, match=f"record 0: .*{words}"):
        inspect(output, to=str(tmp_path / "seen"))
