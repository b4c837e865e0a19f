"""`recordgen inspect` with filters: matching examples, their findings, and their images."""

import json

import pytest

import recordgen
from recordgen.cli import main
from recordgen.errors import SourceError, SplitNotFoundError, UsageError
from recordgen.exports.inspection import find_examples
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


def test_findings_list_their_examples_and_num_limits_them(images, capsys):
    """Text has a line for each example and each finding; JSON has all of both."""
    command = ["inspect", str(images / "out")]
    assert main([*command, "--code", "LEAK", "--label", "cat"]) == 0
    header, row, finding, count = capsys.readouterr().out.splitlines()
    assert header.split() == ["row", "split", "labels", "uri"]
    assert row.split() == [f"{images}/rows.csv:2", "test", "cat", "b/a.png"]
    assert finding.split()[:4] == ["LEAK", "the", "same", "image"]
    assert count == "1 examples"
    assert main([*command, "--source", "rows.csv", "--num", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "5 examples"
    assert main([*command, "--split", "test", "--label", "cat", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["count"], found["written"]) == (1, [])
    assert [item["line"] for item in found["examples"]] == [2]
    assert found["examples"][0]["labels"] == ["cat"]
    assert [item["code"] for item in found["examples"][0]["findings"]] == ["LEAK"]


def test_images_of_the_listed_examples_are_written_byte_for_byte(images, tmp_path, capsys):
    """Their names begin with their number in the list."""
    command = ["inspect", str(images / "out"), "--label", "cat", "--to", str(tmp_path)]
    assert main([*command, "--num", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] == [str(tmp_path / "00000-e.png")]
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
