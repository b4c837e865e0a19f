"""`recordgen inspect`: records, matching examples with their findings, and their images."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import recordgen
from recordgen import write
from recordgen.cli import main
from recordgen.errors import RecordError, SourceError, SplitNotFoundError, UsageError
from recordgen.exports.inspection import find_examples, inspect
from recordgen.payloads.drawing import label_colour
from tests.conftest import encoded, noise

ROWS = """\
TRAIN,a.png,cat
TEST,b/a.png,cat
TRAIN,c.png,../up
TRAIN,sub/c.png,../up
VALIDATION,d.png,
"""


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """An output: b/a.png has the bytes of a.png, and e.png is of another import file."""
    folder = tmp_path_factory.mktemp("matching")
    for name, seed in (("a", 1), ("b/a", 1), ("c", 2), ("sub/c", 3), ("d", 4), ("e", 5)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.png").write_bytes(encoded(noise(40, 30, seed=seed), "PNG"))
    (folder / "rows.csv").write_text(ROWS)
    (folder / "more.csv").write_text("TRAIN,e.png,cat\n")
    recordgen.convert([folder / "rows.csv", folder / "more.csv"], folder / "out")
    return folder


# filters, names of the images
FILTERS = [
    ({"label": "cat"}, ["e", "a", "b/a"]),
    ({"label": "cat", "split": "train"}, ["e", "a"]),
    ({"label": "cat", "code": "LEAK"}, ["b/a"]),
    ({"code": "leak", "split": "test"}, ["b/a"]),
    ({"code": "DARK"}, []),
    ({"source": "more.csv"}, ["e"]),
    ({"source": "rows.csv", "label": "cat", "split": "train"}, ["a"]),
    ({"split": "eval"}, ["d"]),
]


@pytest.mark.parametrize(("filters", "names"), FILTERS, ids=range(len(FILTERS)))
def test_examples_match_all_filters(filters, names, images):
    """By import file and line."""
    found = find_examples(str(images / "out"), **filters)
    assert [example.uri for example in found.first()] == [f"{name}.png" for name in names]
    assert len(found) == len(names)
    if "source" in filters:  # a name, or a path
        filters = {**filters, "source": str(images / filters["source"])}
        assert len(find_examples(str(images / "out"), **filters)) == len(names)


def test_findings_list_their_examples_and_num_limits_them(images, stdout_of, json_of):
    """Text has a line for each example and each finding; JSON has all of both."""
    command = ["inspect", str(images / "out")]
    found = stdout_of(*command, "--code", "LEAK", "--label", "cat")
    header, row, finding, count = found.splitlines()
    assert header.split() == ["row", "split", "labels", "uri"]
    assert row.split() == [f"{images}/rows.csv:2", "test", "cat", "b/a.png"]
    assert finding.split()[:4] == ["LEAK", "the", "same", "image"]
    assert count == "1 example"
    assert stdout_of(*command, "--source", "rows.csv", "--num", "2").endswith("\n5 examples\n")
    found = json_of(*command, "--split", "test", "--label", "cat")
    assert (found["count"], found["written"]) == (1, [])
    assert [item["line"] for item in found["examples"]] == [2]
    assert found["examples"][0]["labels"] == ["cat"]
    assert [item["code"] for item in found["examples"][0]["findings"]] == ["LEAK"]


def test_images_of_the_listed_examples_are_written_byte_for_byte(images, tmp_path, json_of, capsys):
    """Their names begin with their number in the list."""
    command = ["inspect", str(images / "out"), "--label", "cat", "--to", str(tmp_path)]
    assert json_of(*command, "--num", "1")["written"] == [str(tmp_path / "00000-e.png")]
    assert main(command) == 0
    names = ["00000-e.png", "00001-a.png", "00002-a.png"]
    assert capsys.readouterr().out.splitlines()[-3:] == [f"wrote {tmp_path / n}" for n in names]
    for name, source in zip(names, ["e.png", "a.png", "b/a.png"], strict=True):
        assert (tmp_path / name).read_bytes() == (images / source).read_bytes()


# filters, words of the error
UNKNOWN = [
    ({"split": "vel", "label": "cat"}, "'vel'"),
    ({"label": "cta"}, r"'cta'.*'cat'"),
    ({"code": "LAEK"}, r"'LAEK'.*'LEAK'"),
    ({"source": "row.csv"}, r"'row\.csv'"),
]


@pytest.mark.parametrize(("filters", "words"), UNKNOWN, ids=range(len(UNKNOWN)))
def test_an_unknown_value_is_an_error(filters, words, images):
    """It is named, with what it may have meant."""
    with pytest.raises((UsageError, SplitNotFoundError), match=words):
        find_examples(str(images / "out"), **filters)


def test_tables_are_found_by_file_and_written_examples_have_no_list(tmp_path):
    """Tables have no labels to filter by; a damaged file is named."""
    (tmp_path / "table.csv").write_text("age,kind\n1,a\n2,b\n3,a\n")
    recordgen.convert(tmp_path / "table.csv", tmp_path / "table", task="tabular")
    assert len(find_examples(str(tmp_path / "table"), source="table.csv")) == 3
    with pytest.raises(UsageError, match="'a'"):
        find_examples(str(tmp_path / "table"), label="a")
    recordgen.write([{"name": "a"}], str(tmp_path / "written"))
    with pytest.raises(UsageError, match=r"examples\.parquet"):
        find_examples(str(tmp_path / "written"), code="LEAK")
    (tmp_path / "table/lint.jsonl").write_text("{}\n")
    with pytest.raises(SourceError, match=r"lint\.jsonl"):
        find_examples(str(tmp_path / "table"), source="table.csv")


# --- `recordgen inspect`: several labels and boxes, as text and d --------------------------------


Convert = Callable[..., Path]


@pytest.fixture
def convert(make_csv, tmp_path):
    """Return a function that converts lines about 2.png and others, which are 200 by 100."""
    for number in (0, 1, 3):
        image = Image.new("RGB", (200, 100), (90, 90, 90 + number))
        (tmp_path / f"{number}.png").write_bytes(encoded(image, "PNG"))
    (tmp_path / "2.png").write_bytes(encoded(noise(20, 10), "PNG"))

    def run(lines, **options):
        recordgen.convert(make_csv(lines), tmp_path / "out", **options)
        return tmp_path / "out"

    return run


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
    files = {
        record.features["image/source_id"]: Path(record.image_file or "") for record in records
    }
    assert {path.suffix for path in files.values()} == {".png"}
    assert files[b"1.png"].read_bytes() == (tmp_path / "1.png").read_bytes()
    cat, dog = label_colour(0), label_colour(1)
    image = Image.open(files[b"0.png"])
    assert image.size == (200, 100)
    # The box of the cat covers columns 20 to 99 and rows 20 to 59; a dog's label covers its corner.
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
