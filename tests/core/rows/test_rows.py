"""Rows: their names, their places, their findings and rejects."""

import hashlib

import pytest

from recordgen.core.rows import row
from recordgen.rejects import Finding, Reject, RejectCode, place_of, reject, to_lines
from tests.planned import planned


def test_a_reject_names_its_row():
    """Code, place and uri are those of the row."""
    one = row.Row("a.csv", 7, "train", "b.jpg", "cat")
    assert reject(one, RejectCode.EMPTY_FILE, "it is empty") == Reject(
        "a.csv", 7, "b.jpg", "empty_file", "it is empty"
    )
    assert f"{RejectCode.EMPTY_FILE}" == "empty_file"
    assert place_of(*one[:2], one.uri) == "a.csv:7"
    assert place_of("photos/", 7, "cat/1.jpg") == "photos/cat/1.jpg"


def test_rejects_and_findings_as_lines():
    """They are lines of JSON in UTF-8."""
    items = [Reject("ä.csv", 1, "x", "no_path", "é"), Finding("b.csv", 2, "y", "clipped", "—")]
    assert list(to_lines(items)) == [
        '{"source": "ä.csv", "line": 1, "uri": "x", "code": "no_path", "message": "é"}\n',
        '{"source": "b.csv", "line": 2, "uri": "y", "code": "clipped", "message": "—"}\n',
    ]


def test_lines_of_a_table_get_a_split():
    """Only lines without one get it."""
    rows = row.RowBatch("a.csv", [2, 3, 4], ["train", None, "test"], ["", "", ""], ["1", "2", "3"])
    assert rows.with_split("eval") == rows._replace(splits=["train", "eval", "test"])
    assert rows.with_split(None) == rows


def test_odd_lines_are_reported_beside_rows():
    """An odd line is a warning about no payload, unless its level is given; it is taken once."""
    adjusted = row.Adjustments()
    adjusted.add_line("a.csv", 3, "ODD", "a second header")
    adjusted.add_line("a.csv", 4, "ODD", "another", "error")
    assert [tuple(line) for line in adjusted.taken_lines()] == [
        ("a.csv", 3, "", "ODD", "a second header", "warning"),
        ("a.csv", 4, "", "ODD", "another", "error"),
    ]
    assert not adjusted.taken_lines()


def test_changes_name_their_row():
    """A finding has the file, line and uri of the row behind it."""
    adjusted = row.Adjustments()
    one, last = row.Row("a", 1, None, "x", None), row.Row("b", 1, None, "y", None)
    bad = Reject("a", 2, "", "no_path", "")

    def rows():
        adjusted.add("clipped", "box 1")
        adjusted.add("dropped", "box 2")
        yield one
        adjusted.add("dropped", "box 3")
        yield bad
        yield last

    assert list(row.batched(rows(), adjusted)) == [
        Finding("a", 1, "x", "clipped", "box 1"),
        Finding("a", 1, "x", "dropped", "box 2"),
        bad,
        row.RowBatch.of([one]),
        row.RowBatch.of([last]),
    ]


@pytest.mark.parametrize("text", ["", "cat", "größe", "\udcff"])
def test_texts_have_uris(text):
    """The address is the hash of the text, also of broken surrogates."""
    data = text.encode("utf-8", "surrogateescape")
    uri = row.content_uri(text)
    assert uri == f"sha256://{hashlib.sha256(data).hexdigest()}"
    assert row.is_content_uri(uri)
    assert row.content_digest(uri) == hashlib.sha256(data).digest()
    assert not row.is_content_uri(f"gs://{uri}")


@pytest.mark.parametrize("written", ["https://me:pw@host/rex.jpg?token=8f", r"C:\dogs\rex.jpg"])
def test_an_image_in_a_container_is_named_by_its_row_and_file(written):
    """The name holds no secret and no folder of another machine."""
    assert row.name_within("a.parquet", 3, written) == "a.parquet/3/rex.jpg"
    assert row.name_within("a.parquet", 3, "") == "a.parquet/3"


# import file, uri, message, whether the uri adds to them
NAMED = [
    ("a.csv", "1.jpg", "it is empty", True),
    ("a.csv", "1.jpg", "1.jpg is empty", False),
    ("photos/", "1.jpg", "it is empty", False),
    ("a.csv", row.content_uri("a"), "it is empty", False),
]


@pytest.mark.parametrize(("source", "uri", "message", "adds"), NAMED)
def test_a_message_names_a_uri_once(source, uri, message, adds):
    """A uri is shown beside its message and line if neither says it; a digest says nothing."""
    assert row.is_worth_naming(Reject(source, 1, uri, "empty_file", message)) is adds


def test_a_row_has_the_name_of_its_payload():
    """A row without a uri, as of a table, has the name of its annotation."""
    names = [row.row_name("1.jpg", "cat"), row.row_name("", "7,x"), row.row_name("", None)]
    assert names == ["1.jpg", "7,x", ""]


# seed, name, place; a change of these would move the rows of every existing dataset
PLACES = [
    (0, "images/1.jpg", row.Place(0xE61AE9E32178EFBF, 0xE0ADB71ABF7DE55A)),
    (1, "images/1.jpg", row.Place(0xF18A75759AFAD1D7, 0xE41B9BFB047573B3)),
    (0, "größe", row.Place(0xB84EE2D8AAF81B6A, 0x8C04E6E435DE0BA1)),
    (0, "größe".encode(), row.Place(0xB84EE2D8AAF81B6A, 0x8C04E6E435DE0BA1)),
    (0, "\udcff", row.Place(0x0B488A53F37F3C91, 0x47B6209A321FDAAB)),
    (0, b"\xff", row.Place(0x0B488A53F37F3C91, 0x47B6209A321FDAAB)),
]


@pytest.mark.parametrize(("seed", "name", "place"), PLACES)
def test_places_never_change(seed, name, place):
    """A name has one place, whatever was asked before."""
    find = row.placing(seed)
    find("another")
    assert find(name) == place


def test_annotations_of_a_shard_wait_in_its_parts():
    """They are most of its bytes: all rows together have none."""
    rows = [
        row.PlannedRow(at, "a.csv", at, f"{at}.jpg", "cat", 10 * at, "", assigned=False)
        for at in range(5)
    ]
    assert planned(rows).columns["annotation"].null_count == len(rows)
