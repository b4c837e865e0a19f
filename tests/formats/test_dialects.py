"""CSV files that are not written as RFC 4180 says: read if they leave no doubt."""

import pytest

from recordgen.errors import RecordgenError
from recordgen.tables.columns import Table
from recordgen.tasks.object_detection.annotation import Boxes
from recordgen.tasks.texts.text_task import TextContent
from tests.formats.sources import Reading, write_files


def read(folder, text, **options):
    """Return how a file is written, its rows and the codes of its rejects."""
    found = Reading(write_files(folder, {"a.csv": text}) / "a.csv", **options)
    return found.detection, found.rows, found.codes


def texts_of(rows):
    return [TextContent.decode(row.annotation).text for row in rows]


# lines of a CSV, its separator, the number of rows
SEPARATED = {
    "bars below a header": ("text|label\nGood, and cheap.|praise\nBad, and dear|blame\n", "|", 2),
    "bars": ("1.jpg|cat\n2.jpg|dog\n3.jpg|dog\n", "|", 3),
    "MovieLens' users": ("1|24|M|other\n2|53|F|none\n3|23|M|none\n", "|", 3),
    "Excel's hint": ("sep=|\n1.jpg|cat\n2.jpg|dog\n", "|", 2),
    "Caffe's lists": ("images/1.jpg 0\nimages/2.jpg  1\nimages/3.jpg 1 \n", " ", 3),
    "housing": (" 0.00632  18.00  2.31  24.00\n 0.02731   0.00  7.07  21.60\n 0.1 0 7 3\n", " ", 3),
    "labels with bars": ("1.jpg,cat|dog\n2.jpg,dog\n", ",", 2),
    "texts with bars": ("Oil rises | BBC,a\nGas falls | BBC,b\n", ",", 2),
}
OPTIONS = {
    "MovieLens' users": {"columns": "header=no,target=4"},
    "housing": {"columns": "header=no,target=4"},
    "labels with bars": {"label_separator": "|"},
}


@pytest.mark.parametrize("name", SEPARATED)
def test_bars_and_blanks_separate_fields_if_all_lines_agree(name, tmp_path):
    text, delimiter, count = SEPARATED[name]
    detection, rows, rejects = read(tmp_path, text, **OPTIONS.get(name, {}))
    assert (detection.delimiter, len(rows), rejects) == (delimiter, count, [])


def test_blanks_of_any_number_separate(tmp_path):
    """Columns that are aligned with blanks have no empty fields."""
    _, rows, _ = read(tmp_path, "images/1.jpg   cat\nimages/22.jpg  dog \n")
    found = {row.uri: row.annotation for row in rows}
    assert found == {"images/1.jpg": "cat", "images/22.jpg": "dog"}


# lines that blanks do not separate for sure, what the message names
UNSURE = {
    "a path with a blank": ("my cat.jpg 0\ndog.jpg 1\n", r":1: .*\(my cat.jpg 0\)"),
    "numbered paths": ("1 a/1.jpg\n2 a/2.jpg\n", r":1: .*\(1 a/1.jpg\)"),
    "a name in quotes": ('18.0 8 307.0 "ford"\n17.0 8 302.0 "amc"\n15.0 8 3 "ford"\n', "blanks"),
    "numbers": ("1 2.0 3\n2 3.0 4\n3 4.0 5\n", "header"),
}


@pytest.mark.parametrize(("text", "words"), UNSURE.values(), ids=UNSURE.keys())
def test_unsure_separators_stop_with_the_way(text, words, tmp_path):
    """Nothing is divided by a guess."""
    with pytest.raises(RecordgenError, match=words):
        read(tmp_path, text)


# lines of a CSV with backslashes, the texts
ESCAPED = {
    "quotes": (r'"He said \"hi\", and left.",a', 'He said "hi", and left.'),
    "at the end": (r'"He said \"hi\"",a', 'He said "hi"'),
    "a backslash before the end": (r'"\"In\" C:\\",a', '"In" C:\\'),
    "other backslashes": (r'"A \"path\": C:\new, yes",a', r'A "path": C:\new, yes'),
    "over two lines": ('"He said\n\\"hi\\", and left.",a', 'He said\n"hi", and left.'),
    "semicolons": (r'"He said \"hi\"; and left.";a', 'He said "hi"; and left.'),
}


@pytest.mark.parametrize(("line", "text"), ESCAPED.values(), ids=ESCAPED.keys())
def test_backslashes_escape_quotes(line, text, tmp_path):
    """Spark and MySQL write quotes so; the preview says it."""
    detection, rows, rejects = read(tmp_path, f"{line}\n" * 3)
    assert (texts_of(rows), rejects) == ([text] * 3, [])
    assert "backslashes" in str(detection.dialect)


def test_a_late_quote_behind_a_backslash(tmp_path):
    """The first thousand lines decide for all."""
    lines = [f"Good and cheap {number},a" for number in range(1200)]
    lines[900] = lines[1100] = r'"It is \"good\", yes.",a'
    _, rows, rejects = read(tmp_path, "\n".join(lines) + "\n")
    assert (texts_of(rows)[900], texts_of(rows)[1100]) == ('It is "good", yes.',) * 2
    assert rejects == []


@pytest.mark.parametrize(
    ("text", "texts", "rejects"),
    [
        ('"C:\\dir\\",a\n"C:\\b\\",b\n', ["C:\\dir\\", "C:\\b\\"], []),  # as RFC 4180 says
        ('"x \\"y\\" z",a\n"p ""q"" r",b\n"s" \\" t",c\n', ['p "q" r'], ["bad_line"] * 2),
    ],
)
def test_a_backslash_is_a_character_if_lines_are_readable(text, texts, rejects, tmp_path):
    """Backslashes escape only if nothing else explains the lines."""
    _, rows, found = read(tmp_path, text, task="text_classification")
    assert (texts_of(rows), found) == (texts, rejects)


def table_of(folder, text):
    detection, rows, rejects = read(folder, text, task="tabular")
    table = Table.from_json(detection.options.table)
    types = {column.name: column.dtype for column in table.columns}
    return detection, types, [row.annotation for row in rows], rejects


# lines of a table; the columns of numbers; the first row
DECIMALS = {
    "semicolons": ("a;b\n0,5;x\n1;y\n2,25;z\n", ["a"], "0.5,x"),
    "tabs": ("a\tb\n0,5\tx\n-1,5\ty\n2,25\tz\n", ["a"], "0.5,x"),
    "thousands": ("a;b\n1.234,5;x\n17;y\n2,25;z\n", ["a"], "1234.5,x"),
    "one that decides": ("a;b;c\n1,234;0,5;x\n2,345;1;y\n3,456;2;z\n", ["a", "b"], "1.234,0.5,x"),
    "texts": ("a;b\n0,5;It is 3,5 km\n1;Yes, 2\n2,25;z\n", ["a"], '0.5,"It is 3,5 km"'),
}


@pytest.mark.parametrize(("text", "numbers", "row"), DECIMALS.values(), ids=DECIMALS.keys())
def test_decimal_commas_are_read(text, numbers, row, tmp_path):
    """Columns of numbers with commas, which separate nothing here, are numbers."""
    detection, types, rows, rejects = table_of(tmp_path, text)
    assert [name for name, dtype in types.items() if dtype == "float32"] == numbers
    assert (rows[0], rejects) == (row, [])
    assert len(detection.dialect.decimals) == len(numbers)


# header, lines, a later line, the number of lines that are rejected
GROUPED = {
    "decimals": ("a;b", "0,5;x\n2;y\n", "1.234;z", 1),
    "in quotes": ("a;b", "0,5;x\n2;y\n", '"1.234";"z\nz"', 2),
    "whole numbers": ("b;a", "950;0,5\n17;2\n", "1.234;3", 1),
    "only points": ("b;a", "1.950;0,5\n", "1.234;3", 101),
    "a fraction": ("a;b", "0,5;x\n2;y\n", "1.5;z", 0),
    "a text": ("a;b", "0,5;x\n2;y\n", "7;1.234", 0),
}


@pytest.mark.parametrize(("header", "body", "line", "lost"), GROUPED.values(), ids=GROUPED.keys())
def test_points_beside_decimal_commas_may_divide_thousands(header, body, line, lost, tmp_path):
    """1.234 is 1234 in such a file, unless somebody wrote a decimal point: nobody guesses."""
    _, _, rows, rejects = table_of(tmp_path, f"{header}\n{body * 100}{line}\n")
    assert (rejects, line.replace(";", ",") in rows) == (["bad_line"] * lost, lost == 0)


def test_a_file_has_several_dialects(tmp_path):
    """Escaped quotes do not hide decimal commas."""
    text = 'text;price\n"He said \\"no\\".";0,5\nFine.;1,5\nAll, yes.;2,5\n'
    detection, types, rows, _ = table_of(tmp_path, text)
    assert (types["price"], rows[0]) == ("float32", '"He said ""no"".",0.5')
    assert (len(detection.dialect.decimals), detection.dialect.has_backslashes) == (1, True)


@pytest.mark.parametrize(
    "text",
    [
        "a;b\n1,234;x\n2,345;y\n3,456;z\n",  # thousands, or not
        "a;b\n0,5;x\n1.5;y\n2,25;z\n",  # both signs
        "a;b\n0,5;x\nnone;y\n2,25;z\n",  # a text among numbers
        'a,b\n"0,5",x\n"1,5",y\n"2,25",z\n',  # commas separate
    ],
)
def test_doubtful_commas_stay_texts(text, tmp_path):
    """A number is never changed by a guess."""
    detection, types, _, _ = table_of(tmp_path, text)
    assert types["a"] == "bytes"
    assert str(detection.dialect) == ""


@pytest.mark.parametrize(
    "text",
    [
        "image;label;xmin;ymin;xmax;ymax\n1.jpg;cat;0,1;0,2;0,5;0,75\n2.jpg;cat;0;0,2;1;1\n",
        "1.jpg;cat;0,1;0,2;;;0,5;0,75;;\n2.jpg;cat;0,1;0,2;;;0,5;0,6;;\n",
    ],
)
def test_boxes_with_decimal_commas(text, tmp_path):
    """Spreadsheets of most of Europe write boxes so."""
    _, rows, rejects = read(tmp_path, text)
    assert rejects == []
    [box] = Boxes.from_json(rows[0].annotation).boxes
    sides = box.xmin, box.ymin, box.xmax, box.ymax
    assert [round(side, 6) for side in sides] == [0.1, 0.2, 0.5, 0.75]
