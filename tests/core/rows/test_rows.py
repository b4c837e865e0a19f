"""Rows: their names, their places, their findings and rejects."""

import hashlib

import pytest

from recordgen.core.rows.columns import PlannedBatch, columns_of
from recordgen.core.rows.row import (
    Adjustments,
    Place,
    PlannedRow,
    Row,
    RowBatch,
    batched,
    content_digest,
    content_uri,
    is_content_uri,
    placing,
    row_name,
)
from recordgen.rejects import Finding, OddLine, Reject, RejectCode, place_of, reject, to_lines
from tests.planned import planned


def test_a_reject_names_its_row():
    row = Row("a.csv", 7, "train", "b.jpg", "cat")
    assert reject(row, RejectCode.EMPTY_FILE, "it is empty") == Reject(
        "a.csv", 7, "b.jpg", "empty_file", "it is empty"
    )
    assert f"{RejectCode.EMPTY_FILE}" == "empty_file"
    assert place_of(*row[:2], row.uri) == "a.csv:7"
    assert place_of("photos/", 7, "cat/1.jpg") == "photos/cat/1.jpg"


def test_rejects_and_findings_as_lines():
    items = [Reject("ä.csv", 1, "x", "no_path", "é"), Finding("b.csv", 2, "y", "clipped", "—")]
    assert list(to_lines(items)) == [
        '{"source": "ä.csv", "line": 1, "uri": "x", "code": "no_path", "message": "é"}\n',
        '{"source": "b.csv", "line": 2, "uri": "y", "code": "clipped", "message": "—"}\n',
    ]


def test_lines_of_a_table_get_a_split():
    rows = RowBatch("a.csv", [2, 3, 4], ["train", None, "test"], ["", "", ""], ["1", "2", "3"])
    assert rows.with_split("eval") == rows._replace(splits=["train", "eval", "test"])
    assert rows.with_split(None) == rows


def test_rows_travel_together():
    rows = [Row("a" if n < 1500 else "b", n, None, f"{n}.jpg", "cat") for n in range(1600)]
    bad, changed = Reject("a", 9, "", "no_path", ""), Finding("a", 7, "", "swapped", "")
    some = RowBatch.of(rows[150:152])
    found = list(batched([rows[0], bad, *rows[1:150], some, *rows[152:], changed]))
    sizes = [len(item.lines) for item in found if isinstance(item, RowBatch)]
    assert sizes == [100, 50, 2, 1000, 348, 100]
    assert found[0] == bad
    assert changed in found
    assert [row for item in found if isinstance(item, RowBatch) for row in item.rows] == rows
    assert list(batched([])) == []


def test_a_batch_has_only_columns_with_values():
    """Groups and addresses are None if no row has any, and survive if one has."""
    bare, full = (
        Row("a.csv", 1, None, "1.jpg", None),
        Row("a.csv", 2, "eval", "2.jpg", "x", "g", "[]"),
    )
    assert RowBatch.of([bare])[5:] == (None, None)
    assert RowBatch.of([bare, full])[5:] == ((None, "g"), (None, "[]"))
    assert list(RowBatch.of([bare, full]).rows) == [bare, full]


def test_odd_lines_come_before_the_batch():
    """Even the last one, behind all rows; a reject drops the changes of its line."""
    adjusted = Adjustments()

    def items():
        adjusted.add_line("a.csv", 1, "JOINED_FILES", "again")
        yield Row("a.csv", 2, None, "2.jpg", None)
        adjusted.add("boxes_dropped", "of the reject")
        yield Reject("a.csv", 3, "", "bad_line", "")
        adjusted.add_line("a.csv", 4, "JOINED_FILES", "mark", "error")

    first, reject_, last, batch = batched(items(), adjusted)
    assert first == OddLine("a.csv", 1, "", "JOINED_FILES", "again")
    assert (reject_.line, last.line, first.level, last.level) == (3, 4, "warning", "error")
    assert list(batch.lines) == [2]


def test_changes_name_their_row():
    adjusted = Adjustments()
    one, bad, last = (
        Row("a", 1, None, "x", None),
        Reject("a", 2, "", "no_path", ""),
        Row("b", 1, None, "y", None),
    )

    def rows():
        adjusted.add("clipped", "box 1")
        adjusted.add("dropped", "box 2")
        yield one
        adjusted.add("dropped", "box 3")
        yield bad
        yield last

    assert list(batched(rows(), adjusted)) == [
        Finding("a", 1, "x", "clipped", "box 1"),
        Finding("a", 1, "x", "dropped", "box 2"),
        bad,
        RowBatch.of([one]),
        RowBatch.of([last]),
    ]


@pytest.mark.parametrize("text", ["", "cat", "größe", "\udcff"])
def test_texts_have_uris(text):
    data = text.encode("utf-8", "surrogateescape")
    uri = content_uri(text)
    assert uri == f"sha256://{hashlib.sha256(data).hexdigest()}"
    assert is_content_uri(uri)
    assert content_digest(uri) == hashlib.sha256(data).digest()
    assert not is_content_uri(f"gs://{uri}")


# uri, annotation, name
NAMES = [("a.jpg", "cat", "a.jpg"), ("", "cat", "cat"), ("", None, ""), ("a.jpg", None, "a.jpg")]


@pytest.mark.parametrize(("uri", "annotation", "name"), NAMES)
def test_rows_are_placed_by_uri_or_annotation(uri, annotation, name):
    assert row_name(uri, annotation) == name


# seed, name, place; a change of these would move the rows of every existing dataset
PLACES = [
    (0, "images/1.jpg", Place(0xE61AE9E32178EFBF, 0xE0ADB71ABF7DE55A)),
    (1, "images/1.jpg", Place(0xF18A75759AFAD1D7, 0xE41B9BFB047573B3)),
    (0, "größe", Place(0xB84EE2D8AAF81B6A, 0x8C04E6E435DE0BA1)),
    (0, "größe".encode(), Place(0xB84EE2D8AAF81B6A, 0x8C04E6E435DE0BA1)),
    (0, "\udcff", Place(0x0B488A53F37F3C91, 0x47B6209A321FDAAB)),
    (0, b"\xff", Place(0x0B488A53F37F3C91, 0x47B6209A321FDAAB)),
]


@pytest.mark.parametrize(("seed", "name", "place"), PLACES)
def test_places_never_change(seed, name, place):
    find = placing(seed)
    find("another")
    assert find(name) == place


def test_a_part_of_a_batch_has_its_rows():
    """Annotations of a shard are only in its parts: all rows together have none."""
    rows = [
        PlannedRow(at, "a.csv", at, f"{at}.jpg", "cat", 10 * at, "", assigned=False)
        for at in range(5)
    ]
    batch = PlannedBatch(columns_of(PlannedRow, rows))
    part = batch.slice(2, 2)
    assert part.rows == rows[2:4]
    assert part.rows[0] is batch.rows[2]
    assert (part.payload_bytes, batch.slice(5, 1).payload_bytes) == (50, 0)
    assert planned(rows).columns["annotation"].null_count == len(rows)
