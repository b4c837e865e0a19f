"""group_by: rows of one group share a split, in every format."""

import pandas as pd
import pytest

import recordgen
from recordgen.core.dataset.splits import EvalFrom, GroupBy
from recordgen.core.flow.steps import with_groups
from recordgen.core.rows.row import Row, RowBatch, batched, content_uri
from recordgen.errors import UsageError
from recordgen.formats.row_reader import RowReader
from recordgen.formats.source import open_source
from recordgen.options import ConvertOptions
from tests.conftest import write_file
from tests.core.planning.test_eval_from import VIDEOS, convert, split_of_each
from tests.formats.sources import json_lines

# text, column, pattern
SPELLINGS = [
    ("patient_id", "patient_id", ""),
    (" Patient No-3 ", "Patient No-3", ""),
    ("3", "3", ""),
    ("größe", "größe", ""),
    (r"p\d+", "", r"p\d+"),
    ("a.b", "", "a.b"),
    ("(p[0-9]+)/", "", "(p[0-9]+)/"),
]


@pytest.mark.parametrize(("text", "column", "pattern"), SPELLINGS)
def test_a_column_or_an_expression(text, column, pattern):
    """Parentheses make an expression."""
    assert GroupBy.parse(text) == GroupBy(column, pattern)
    assert ConvertOptions(group_by=text).grouping == GroupBy(column, pattern)
    assert str(GroupBy(column, pattern)) == column + pattern


# expression, uri, group
MATCHES = [
    (r"(p\d+)/", "scans/p7/1.jpg", "p7"),
    (r"p\d+", "scans/p7/1.jpg", "p7"),
    (r"(p\d+)/(\w+)", "scans/p7/1.jpg", "p7"),
    (r"(p\d+)/", "scans/q7/1.jpg", None),
    (r"(p\d+)?/1", "scans/1.jpg", None),  # the parentheses do not match
    (r"(p?)/1", "scans/1.jpg", None),  # or match nothing
]


@pytest.mark.parametrize(("pattern", "uri", "group"), MATCHES)
def test_the_group_is_the_first_parentheses_or_the_whole_match(pattern, uri, group):
    """As in Python's ``re``."""
    assert GroupBy.parse(pattern).find(uri) == group


def test_a_pattern_that_cannot_group_is_shown():
    """The error quotes it."""
    with pytest.raises(UsageError, match=r"'\(p'"):
        ConvertOptions(group_by="(p")
    with pytest.raises(UsageError, match=r"'\(p\*\)'"):
        ConvertOptions(group_by="(p*)")


def batch(rows):
    [found] = batched(rows)
    assert isinstance(found, RowBatch)
    return found


# split, uri, group → whether a row is kept without eval_from, and with eval_from=train:10
NEEDS = [
    (None, "a", "p1", True, True),
    (None, "b", None, False, False),
    ("train", "c", None, True, False),
    ("test", "d", None, True, True),
]


def test_rows_whose_split_needs_a_group():
    """They keep their addresses, and all of them may be rejected."""
    rows = [
        Row("x.csv", n, split, uri, "cat", g, f"[{n}]")
        for n, (split, uri, g, _, _) in enumerate(NEEDS)
    ]
    for share, at in ((None, 3), (EvalFrom("train", 10), 4)):
        kept, rejects = with_groups(batch(rows), GroupBy("patient"), share)
        assert list(kept.rows) == [row for row, need in zip(rows, NEEDS, strict=True) if need[at]]
        assert [(item.line, item.code) for item in rejects] == [
            (n, "no_group") for n, need in enumerate(NEEDS) if not need[at]
        ]
    assert (rejects[0].uri, "'patient'" in rejects[0].message) == ("b", True)
    none, rejects = with_groups(batch(rows[1:2]), GroupBy("patient"), None)
    assert (none.source, list(none.rows), len(rejects)) == ("x.csv", [], 1)


def test_why_an_expression_gives_no_group():
    """The reject says why."""
    rows = [
        Row("x.csv", n, None, uri, "cat") for n, uri in enumerate(["p/1", "", content_uri("7")])
    ]
    kept, rejects = with_groups(batch(rows), GroupBy(pattern="[0-9]"), None)
    assert [(row.uri, row.group) for row in kept.rows] == [("p/1", "1")]
    assert len(rejects) == 2
    _, rejects = with_groups(batch(rows), GroupBy(pattern="(q)"), None)
    assert ["uri '" in item.message for item in rejects] == [True, False, False]
    assert all("group_by='(q)'" in item.message for item in rejects)


def groups_read(source, **options):
    """Return the group of each row of a source, without rejects."""
    found, decided = open_source(source, ConvertOptions(**options))
    if found.rows:
        items = [item for part in found.rows for item in part if isinstance(item, RowBatch)]
    else:
        reader = RowReader(decided)
        items = [i for f in found.files for i in reader.read(f) if isinstance(i, RowBatch)]
    return [group for _, group in sorted((r.line, r.group) for item in items for r in item.rows)]


IMAGES = ["image_uri,patient,label", "1.jpg,p1,cat", "2.jpg,p2,dog", "3.jpg,,cat"]
OTHERS = ["video,image_uri,label", "p1,1.jpg,cat", "p2,2.jpg,dog", ",3.jpg,cat"]
NAMED = ["file,breed,patient", "1.jpg,cat,p1", "2.jpg,dog,p2", "3.jpg,cat,"]
TEXTS = ["text,label,patient", "how are you,a,p1", "fine,b,p2", "so so,a,"]
TABLE = ["age,patient,y", "1,p1,a", '2," p2",b', "3,,a"]
DECLARED = '{"n": "int", "who": "text"}'
# lines; options, with group_by=patient unless they say more
LINES = {
    "by name": (IMAGES, {}),
    "by number": (IMAGES, {"group_by": "2"}),
    "quoted": ([*IMAGES[:1], '"1.jpg","p1","cat"', *IMAGES[2:]], {}),
    "a name that means a path elsewhere": (OTHERS, {"group_by": "video"}),
    "beside other columns": (NAMED, {"columns": "path=file,label=breed"}),
    "no header": ([*NAMED[1:3], "3.jpg,cat"], {"group_by": "3", "columns": "path=1,label=2"}),
    "texts": (TEXTS, {"task": "text_classification"}),
    "declared": (["n,patient", "1,p1", "2,p2", "3,"], {"schema": '{"n": "int"}'}),
    "declared, no header": (["1,p1", "2,p2", "3,"], {"group_by": "2", "schema": DECLARED}),
    "a table": (TABLE, {"columns": "target=y"}),
}


@pytest.mark.parametrize(("lines", "options"), LINES.values(), ids=LINES)
def test_a_column_of_a_csv_has_the_group(lines, options, make_csv):
    """By its name or number, in every kind of import file."""
    given = {"group_by": "patient", **options}
    assert groups_read(make_csv(lines), **given) == ["p1", "p2", None]


def test_a_key_of_json_has_the_group(tmp_path):
    """Lists and objects are no group."""
    objects = [
        {"imageGcsUri": f"{n}.jpg", "scan": {"p": 1}, "patient": n or None} for n in range(3)
    ]
    source = write_file(tmp_path / "a.jsonl", json_lines(*objects))
    given = {"group_by": "patient", "task": "image_classification"}
    assert groups_read(str(source), **given) == [None, "1", "2"]
    assert groups_read(str(source), columns="path=imageGcsUri", **given) == [None, "1", "2"]
    with pytest.raises(UsageError, match=r"'patients'.*'patient'"):
        groups_read(str(source), group_by="patients")
    objects[1]["patient"] = [1, 2]
    source.write_text(json_lines(*objects))
    result = recordgen.plan(str(source), max_reject_fraction=1, **given)
    assert "patient" in next(item.message for item in result.rejects if item.line == 2)


def test_a_column_of_a_frame_has_the_group(tmp_path):
    """Numbers are texts, also 0, and gaps are none; so it is in a file of Parquet."""
    frame = pd.DataFrame({"image_uri": ["1.jpg", "2.jpg"], "label": "x", "patient": [7, None]})
    assert groups_read(frame, group_by="patient") == ["7", None]
    schema = {"schema": '{"label": "label"}', "group_by": "patient"}
    assert groups_read(frame, **schema) == ["7", None]
    table = pd.DataFrame({"age": [1, 2], "patient": ["p1", None]})
    assert groups_read(table, task="tabular", group_by="patient") == ["p1", None]
    file, columns = f"{tmp_path}/a.parquet", {"n": [0, None], "who": "x", "image": b"x"}
    pd.DataFrame(columns, dtype="object").to_parquet(file)
    for options in ({"schema": DECLARED}, {"columns": "path=image,label=who"}):
        for group in ("n", "1"):
            assert groups_read(file, group_by=group, **options) == ["0", None]


def test_the_summary_names_the_column_of_groups(make_csv):
    """The preview marks it."""
    found = recordgen.plan(make_csv(TABLE, "t.csv"), group_by="patient", columns="target=y")
    assert dict(found.detection.columns)["patient"] == "text (group)"
    images = make_csv(["image_uri,patient,label", "TRAIN,p1,cat"])
    found = recordgen.plan(images, group_by="2", max_reject_fraction=1)
    assert found.detection.columns[-1] == ("2", "group")


def test_a_missing_column_is_named_with_its_file(make_csv, tmp_path):
    """Unknown and ambiguous columns stop."""
    source = make_csv(IMAGES)
    with pytest.raises(UsageError, match=r"labels.csv:1: group_by=patent: "):
        recordgen.plan(source, group_by="patent")
    bare = make_csv(["1.jpg,cat,p1", "2.jpg,dog,p2"], "bare.csv")
    with pytest.raises(UsageError, match=r"group_by=3 "):
        recordgen.plan(bare, group_by="3", task="image_multi_label")
    twice = make_csv(["image_uri,label,p,p", "1.jpg,cat,1,2"], "twice.csv")
    with pytest.raises(UsageError, match=r"2 columns .*'p'.*group_by='3'"):
        recordgen.plan(twice, group_by="p")
    write_file(tmp_path / "images/cat/1.jpg", b"x")
    with pytest.raises(UsageError, match=r"group_by=patient .* folder"):
        recordgen.plan(f"{tmp_path}/images/", group_by="patient")


def splits_by_patient(found):
    together = {}
    for uri, split in found.items():
        together.setdefault(uri.partition("/")[0], set()).add(split)
    return together


def test_no_group_straddles_splits(make_csv, tmp_path):
    """Neither after an append nor with ``eval_from``."""
    lines = [f"p{n % 40}/{n}.mp4,x" for n in range(160)]
    source = make_csv(lines)
    found = convert(source, tmp_path / "a", group_by=r"(p\d+)/")
    assert set(found.values()) == {"train", "eval", "test"}
    assert all(len(splits) == 1 for splits in splits_by_patient(found).values())
    # The same groups in a column with other uris: the group's value decides.
    named = ["video_uri,label,patient", *(f"{n}.mp4,x,p{n % 40}" for n in range(160))]
    by_column = convert(make_csv(named, "column.csv"), tmp_path / "b", group_by="patient")
    assert by_column == {uri.partition("/")[2]: split for uri, split in found.items()}
    more = make_csv([*lines, *(f"p{n % 50}/{n}.mp4,x" for n in range(160, 300))], "more.csv")
    recordgen.convert(more, tmp_path / "a", group_by=r"(p\d+)/", append=True, **VIDEOS)
    grown = split_of_each(tmp_path / "a", "video/source_id")
    assert {uri: grown[uri] for uri in found} == found
    assert all(len(splits) == 1 for splits in splits_by_patient(grown).values())
    given = {"group_by": r"(p\d+)/", "eval_from": "train:30", "split": "1"}
    moved = splits_by_patient(convert(source, tmp_path / "c", **given))
    assert sorted(map(len, moved.values())) == [1] * 40
    assert set.union(*moved.values()) == {"train", "eval"}


def test_rows_without_a_group_are_rejected(make_csv):
    """Unless they name a split."""
    source = make_csv(["p1/1.mp4,x", "2.mp4,x", "TEST,3.mp4,x"])
    result = recordgen.plan(source, group_by="(p1)/", max_reject_fraction=1, **VIDEOS)
    assert [(item.line, item.code) for item in result.rejects] == [(2, "no_group")]
    assert (result.read, result.rows) == (3, 2)


def test_a_video_of_several_groups_is_never_divided(make_csv, tmp_path):
    """Its first group decides."""
    header = "video_uri,label,start,end,patient"
    lines = [f"{n}.mp4,x,{part},{part + 1},p{n}-{part}" for part in (2, 0, 1) for n in range(60)]
    mixed = convert(make_csv([header, *lines]), tmp_path / "a", group_by="patient")
    first = [f"{n}.mp4,x,0,9,p{n}-2" for n in range(60)]
    assert mixed == convert(make_csv([header, *first], "b.csv"), tmp_path / "b", group_by="patient")
