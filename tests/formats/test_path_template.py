"""Paths made of columns: ``--columns path=train/{id}.jpg``."""

import json

import pandas as pd
import pytest

import recordgen
from recordgen.errors import UsageError
from tests.formats.sources import Reading


def read(path, columns, **options):
    """Return the uris, or else the codes, of the lines of a file."""
    found = Reading(path, columns=columns, **options)
    rejects = {item.line: f"{item.code}: {item.message}" for item in found.rejects}
    return {row.line: row.uri for row in found.rows} | rejects


# file, template, paths by line
FILES = [
    ("id,label\n7,a\n8,b\n", "x/{id}.jpg", {2: "x/7.jpg", 3: "x/8.jpg"}),
    ("id;label\n7;a\n8;b\n", "x/{id}.jpg", {2: "x/7.jpg", 3: "x/8.jpg"}),
    ('id,label\n"7","a"\n8,b\n', "x/{id}.jpg", {2: "x/7.jpg", 3: "x/8.jpg"}),
    ("id , label\n 7 ,a\n", "x/{id}.jpg", {2: "x/7.jpg"}),
    ("id,label\n7,a\n", "{label}/{id}.jpg", {2: "a/7.jpg"}),
    ("id,label\n7,a\n", "{id}/{id}.jpg", {2: "7/7.jpg"}),
    ("id,label\n7,a\n", "{1}.jpg", {2: "7.jpg"}),  # the first column
    ("id,label\n7,a\n", "{{x}}/{id}.jpg", {2: "{x}/7.jpg"}),
    ("id,label\n7,a\n\n8,b\n", "{id}.jpg", {2: "7.jpg", 4: "8.jpg"}),
    ("label,id\na\nb,8\n", "{id}.jpg", {2: "no_path", 3: "8.jpg"}),  # no id
    ("id,label\n7,a,,\n8\n", "{id}.jpg", {2: "7.jpg", 3: "8.jpg"}),  # other lengths
    ("id,label\n7,a,b\n8,b\n", "{id}.jpg", {2: "too_many_fields: expected 2 fields", 3: "8.jpg"}),
    ("id,label\n7,a\nid,label\n8,b\n", "{id}.jpg", {2: "7.jpg", 4: "8.jpg"}),  # a joined file
    ("id,image_url,label\n7,b.jpg,a\n", "{id}.jpg", {2: "7.jpg"}),  # a known name loses
    ("id,{id}.jpg,label\n7,other.jpg,a\n", "{id}.jpg", {2: "other.jpg"}),  # a column of that name
]  # fmt: skip


@pytest.mark.parametrize(("text", "template", "paths"), FILES)
def test_lines(text, template, paths, tmp_path):
    """Each line has the path that its columns make."""
    (tmp_path / "labels.csv").write_text(text)
    found = read(tmp_path / "labels.csv", f"path={template},label=label")
    assert found.keys() == paths.keys()
    assert all(found[line].startswith(path) for line, path in paths.items()), found


def test_commas(tmp_path):
    """A path may hold a comma, which fields of plain lines cannot."""
    (tmp_path / "labels.csv").write_text("id,label\n7,a\n8,a\n")
    columns = {"path": "a,{id}.jpg", "label": "label"}
    assert read(tmp_path / "labels.csv", columns) == {2: "a,7.jpg", 3: "a,8.jpg"}


def test_lines_of_a_large_file_are_read_like_those_of_a_small_one(tmp_path):
    rows = [f"{n},{n % 3}" for n in range(6_000)]
    rows[4_000] = "4000"
    (tmp_path / "labels.csv").write_text("\n".join(["id,label", *rows]))
    found = read(tmp_path / "labels.csv", "path=x/{id}.jpg,label=label")
    assert found == {n + 2: f"x/{n}.jpg" for n in range(6_000)}


def test_objects(tmp_path):
    """Keys of JSON objects, numbers among them; the key of a row may be missing."""
    objects = [{"id": 7, "breed": "a"}, {"id": 8.0, "breed": "b"}, {"breed": "b"}]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, objects)))
    found = read(tmp_path / "labels.jsonl", "path=x/{id}.jpg,label=breed")
    assert [found[1], found[2], found[3][:7]] == ["x/7.jpg", "x/8.jpg", "no_path"]
    with pytest.raises(UsageError, match=r"'idd', .* id, breed"):
        read(tmp_path / "labels.jsonl", "path=x/{idd}.jpg,label=breed")


def test_frames():
    """Numbers of a column with gaps are whole, as before pandas read them."""
    frame = pd.DataFrame({"id": [7, None, 8], "label": ["a", "b", "c"]})
    found = Reading(frame, columns={"path": "x/{id}.jpg", "label": "label"})
    assert [row.uri for row in found.rows] == ["x/7.jpg", "x/8.jpg"]
    assert found.codes == ["no_path"]
    with pytest.raises(UsageError, match=r"'idd', .* id, label"):
        Reading(frame, columns={"path": "{idd}.jpg", "label": "label"})
    assert list(frame.columns) == ["id", "label"]


@pytest.mark.parametrize("columns", ["path={idd}.jpg", "path=x/{label}/{idd}.jpg,label=label"])
def test_a_missing_column_lists_those_that_exist(columns, tmp_path):
    (tmp_path / "labels.csv").write_text("id,label\n7,a\n")
    with pytest.raises(UsageError, match=r"'idd', .* id, label; .*'id'"):
        read(tmp_path / "labels.csv", columns)


def test_the_records_of_complete_paths(tmp_path, make_pictures):
    """Templates with and without a root, and complete paths, give the same records."""
    make_pictures(*(f"images/{n}.jpg" for n in range(6)))
    lines = [f"{n},{'ab'[n % 2]}" for n in range(6)]
    (tmp_path / "in/names.csv").write_text("\n".join(["id,label", *lines]))
    (tmp_path / "in/paths.csv").write_text(
        "\n".join(f"images/{n}.jpg,{'ab'[n % 2]}" for n in range(6))
    )

    def digest(name, **options):
        return recordgen.check(tmp_path / "in" / name, lint="-ALL", **options).dataset.digest

    expected = digest("paths.csv")
    assert digest("names.csv", columns="path=images/{id}.jpg") == expected
    root = str(tmp_path / "in/images")
    assert digest("names.csv", columns="path=x_{id}.jpg", image_root=root) != expected
    assert digest("names.csv", columns="path={id}.png", image_root=root) == expected
