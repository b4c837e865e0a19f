"""Import files in other encodings than UTF-8."""

import codecs
import io
from unittest import mock

import pandas as pd
import pytest

from recordgen.errors import NotUnderstoodError, SourceError, UsageError
from recordgen.formats import lines
from recordgen.formats.detect import detect_frame
from recordgen.options import make_options
from tests.conftest import error_of
from tests.formats.sources import Reading, write_files

CSV = "image,label\n1.jpg,caf\u00e9\n2.jpg,th\u00e9\n3.jpg,th\u00e9\n"
LABELS = ["caf\u00e9", "th\u00e9", "th\u00e9"]


def read(path, **options):
    """Return the labels of the rows of an import file."""
    return [row.annotation for row in Reading(path, **options).rows]


def decoded(data, encoding="", chunk_bytes=1 << 20):
    """Return a file's contents in UTF-8, read some bytes at a time."""
    name = make_options({"encoding": encoding}).encoding
    with mock.patch.object(lines, "CHUNK_BYTES", chunk_bytes):
        return b"".join(lines.text_chunks(io.BytesIO(data), "a.csv", name))


MARKED = [
    CSV.encode(),
    CSV.encode("utf-8-sig"),
    CSV.encode("utf-16"),
    codecs.BOM_UTF16_BE + CSV.encode("utf-16-be"),
    CSV.encode("utf-32"),
    CSV.replace(",", "\t").encode("utf-16"),  # Excel's "Unicode text"
]


@pytest.mark.parametrize("data", MARKED)
def test_a_byte_order_mark_shows_the_encoding(data, tmp_path):
    """No option is needed if the file says its encoding, wherever it is cut into chunks."""
    (tmp_path / "a.csv").write_bytes(data)
    assert read(tmp_path / "a.csv") == LABELS
    assert decoded(data, chunk_bytes=7) == decoded(data)


NAMES = ["cp1252", "latin-1", "Windows-1252", "utf-16-le", "utf-16", "utf_8"]


@pytest.mark.parametrize("name", NAMES)
def test_the_option_decodes_the_whole_file(name, tmp_path):
    """Every name that Python knows is an encoding."""
    (tmp_path / "a.csv").write_bytes(CSV.encode(name))
    assert read(tmp_path / "a.csv", encoding=name) == LABELS
    assert decoded(CSV.encode(name), name, 5) == CSV.encode()


def test_every_format_of_lines_is_decoded(tmp_path):
    """JSON Lines, tables and sentences with their tags, too."""
    line = '{"imageGcsUri": "1.jpg", "classificationAnnotation": {"displayName": "caf\u00e9"}}'
    files = {
        **dict.fromkeys(("a.jsonl", "a.txt"), line.encode("utf-16")),
        "b.jsonl": line.encode("cp1252"),
        "sentences.txt": "Ren\u00e9 flew".encode("cp1252"),
        "labels.txt": "B-PER O",
        "t.csv": "age,job\n1,caf\u00e9\n2,th\u00e9\n3,a\n".encode("cp1252"),
    }
    write_files(tmp_path, files)
    assert read(tmp_path / "a.jsonl") == read(tmp_path / "a.txt") == LABELS[:1]
    assert read(tmp_path / "b.jsonl", encoding="cp1252") == LABELS[:1]
    [annotation] = read(tmp_path / "sentences.txt", encoding="cp1252")
    assert "Ren\u00e9 flew" in annotation
    assert read(tmp_path / "t.csv", encoding="cp1252", task="tabular")[0] == "1,caf\u00e9"


# data, encoding, where
OTHER_BYTES = [
    (b"1.jpg,a\n2.jpg,\x81\n", "cp1252", ":2: byte 0x81"),
    (CSV.encode("utf-16")[:-1], "", ":4: byte"),
    (CSV.encode("utf-16"), "cp1252", "utf-16-le"),
    (CSV.encode("utf-8-sig"), "cp1252", "utf-8"),
    (CSV.encode(), "utf-16", ":1: .* utf-16"),
    (CSV.encode(), "punycode", ":1: .* punycode"),
]


@pytest.mark.parametrize(("data", "encoding", "where"), OTHER_BYTES)
def test_bytes_of_another_encoding_stop_the_run(data, encoding, where):
    """The message names the line and the encoding; no character is lost or replaced."""
    for size in (1 << 20, 6):
        with pytest.raises(SourceError, match=where):
            decoded(data, encoding, size)


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
def test_nuls_without_a_mark_stop_with_the_encoding(name, tmp_path):
    """The options of the refusal read the file."""
    path = write_files(tmp_path, {"a.csv": CSV.encode(name)}) / "a.csv"
    assert read(path, **error_of(NotUnderstoodError, read, path).options) == LABELS


@pytest.mark.parametrize("name", ["cp1253x", "base64", "rot13", "\0"])
def test_an_unknown_encoding_is_an_error(name):
    """An encoding of bytes is none of texts."""
    with pytest.raises(UsageError, match="encoding"):
        make_options({"encoding": name})


def test_an_encoding_without_files_of_lines_is_refused(tmp_path):
    """Images and DataFrames have no encoding."""
    with pytest.raises(UsageError, match="encoding"):
        read(write_files(tmp_path, {"cat/1.jpg": ""}), encoding="cp1252")
    with pytest.raises(UsageError, match="encoding"):
        detect_frame(pd.DataFrame({"image": ["1.jpg"]}), make_options({"encoding": "cp1252"}))
