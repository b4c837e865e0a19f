# ruff: noqa: E501 - tables with a case on each line
"""The rows of one bucket: each case with its whole outcome."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from hashlib import sha256

import pytest

from recordgen import tasks
from recordgen.core.dataset.counts import RowCounts
from recordgen.core.dataset.splits import SplitFractions
from recordgen.core.planning.decide import facts_of
from recordgen.core.planning.plan import BucketSummary
from recordgen.core.planning.resolve import settle_bucket
from recordgen.core.rows.columns import PlannedBatch, columns_of
from recordgen.core.rows.row import (
    KnownRow,
    PlacedRow,
    PlannedRow,
    content_digest,
    content_uri,
    placing,
)
from recordgen.core.shards import payload_rows
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.payloads.fetching import Content
from recordgen.storage import FileInfo
from recordgen.tables.columns import Column, Table
from recordgen.tasks.tables.task import Tabular
from tests.planned import Answers, chosen, resolved
from tests.settings import split_settings

IMAGE, MULTI = tasks.ImageClassification(), tasks.ImageMultiLabel()
TEXT, VIDEO = tasks.TextClassification(), tasks.VideoClassification()
CSV = "/d/a.csv"
LATE = (1 << 64) - 1  # the last split hash: test, and no share moves it
EARLY = 0  # the first split hash: train, and every share moves it
SIZE = 7
OTHER = "conflicting_labels"


def row(
    line, split=None, annotation="cat", uri="/x.jpg", *, source=CSV, split_hash=LATE, sort_key=5
):
    return PlacedRow(sort_key, split_hash, source, line, split, uri, annotation)


@dataclass(frozen=True)
class Outcome:
    """The resolved rows of a bucket, without empty parts."""

    # Line, split and whether that was assigned, of each planned row in order.
    planned: list[tuple[int, str, bool]] = field(default_factory=list)
    rejects: list[tuple[int, str, str]] = field(default_factory=list)  # line, code and message
    # Duplicates, merged, dropped, existing and moved rows.
    counts: dict[str, int] = field(default_factory=dict)


def digest_of(uri):
    return sha256(uri.encode()).digest()


def contents_of(asked):
    return [Content(digest_of(one.uri)) for one in asked]


GIVEN = {"drop_unnamed": False, "known": (), "lost": (), "contents": contents_of}


def resolve(rows, task=IMAGE, *, refused=(), **options):
    """Resolve a bucket whose payloads have ``SIZE`` bytes, and their uri as content.

    ``refused``: the messages of payloads that are missing.
    """

    def infos(uris, sources):
        return [
            PayloadError("missing_file", refused[uri]) if uri in refused else FileInfo(SIZE, uri)
            for uri, _ in zip(uris, sources, strict=True)
        ]

    given = {name: options.pop(name, default) for name, default in GIVEN.items()}
    return resolved(rows, options=ConvertOptions(**options), task=task, infos=infos, **given)


def settle(rows, task, **options):
    """Settle a bucket of payloads without bytes."""
    store = Answers(lambda uris, _: [FileInfo(0, "v")] * len(uris), contents_of)
    splits, placed = split_settings(**options), columns_of(PlacedRow, rows)
    return settle_bucket(placed, splits=splits, task=task, drop_unnamed=False, store=store)


def outcome(rows, task=IMAGE, **more):
    groups, summary = resolve(rows, task, **more)
    names = ("duplicates", "merged", "dropped", "existing")
    counts = {name: getattr(summary.counts, name) for name in names}
    counts["moved"] = summary.moved
    return Outcome(
        [(one.line, group.split, one.assigned) for group, rows in groups.items() for one in rows],
        [(one.line, one.code, one.message) for one in summary.rejects],
        {name: count for name, count in counts.items() if count},
    )


def told(rows, task=IMAGE, **more):
    """Return an outcome as text: ``1 train, 2 test*; 3 conflicting_splits; duplicates=1``.

    Planned rows by line, with a star if their split was assigned; rejects; counts.
    """
    found = outcome(rows, task, **more)
    parts = (
        [f"{line} {split}{'*' * assigned}" for line, split, assigned in sorted(found.planned)],
        [f"{line} {code}" for line, code, _ in sorted(found.rejects)],
        [f"{name}={count}" for name, count in found.counts.items()],
    )
    return "; ".join(", ".join(part) for part in parts if part)


CAT = '[["cat",0.0,0.0,0.5,0.5]]'
CAT_AND_DOG = '[["cat",0.0,0.0,0.5,0.5],["dog",0.0,0.0,0.5,0.5]]'

# task; annotations of the rows of one uri, and the splits; the merged annotation; duplicates;
# merged; rejects
ADDING = [
    (MULTI, ['["a"]', '["b"]', None, '["a", "b"]'], "....", '["a", "b"]', 2, 1, 0),
    (MULTI, [None, None], "..", None, 1, 0, 0),
    (MULTI, ['["a"]', '["b"]', '["c"]'], "te.", '["a", "b", "c"]', 0, 2, 0),
    (tasks.ObjectDetection(), [CAT, CAT_AND_DOG, CAT, None], "...t", CAT_AND_DOG, 2, 1, 0),
    (tasks.ObjectDetection(), [None, CAT], "..", CAT, 0, 1, 0),
]


@pytest.mark.parametrize(
    ("task", "annotations", "splits", "together", "duplicates", "merged", "rejects"), ADDING
)
def test_rows_of_one_uri_add_up(task, annotations, splits, together, duplicates, merged, rejects):
    """Labels and boxes of several rows are one annotation."""
    names = {".": None, "t": "train", "e": "eval"}
    rows = [
        row(line, names[split], annotation)
        for line, (annotation, split) in enumerate(zip(annotations, splits, strict=True), start=1)
    ]
    groups, summary = resolve(rows[::-1], task)
    [(group, [kept])] = groups.items()
    assert (kept.line, kept.annotation) == (1, together)
    assert group.split == next((names[split] for split in splits if split != "."), "test")
    assert summary.named != kept.assigned
    counts = summary.counts
    assert (counts.duplicates, counts.merged, counts.rejects) == (duplicates, merged, rejects)


def test_rows_in_several_splits_are_a_finding():
    """It names the row whose split is used, and the first five of the others."""
    splits = [None, "eval", "train", None, *["test"] * 5, "eval"]
    rows = [row(line, split, CAT) for line, split in enumerate(splits, start=1)]
    found = settle(rows, tasks.ObjectDetection())
    [odd] = found.odd_lines
    assert (odd.source, odd.line, odd.uri, odd.code) == (CSV, 2, "/x.jpg", "MIXED_SPLITS")
    assert re.findall(rf"'(\w+)' \w+ {CSV}:(\d)", odd.message) == [
        *[("eval", "2"), ("train", "3")],
        *[("test", f"{line}") for line in range(5, 9)],
    ]
    assert not found.rejects
    assert not settle(rows[:2], tasks.ObjectDetection()).odd_lines


ANNOTATION, UNLABELLED = '{"text": "x", "said": ["a"]}', '{"text": "x", "said": []}'
X = content_uri("x")
ONE, TWO, THREE = '["a", 0.0, 1.0]', '["b", 1.0, 2.0]', '["c", 2.0, 3.0]'
# Fields by their marks.
FIELDS = {"=": "annotation", "@": "uri", "#": "sort_key", "<": "source"}
NAMED = {"ONE": ONE, "TWO": TWO, "THREE": THREE, "SAID": ANNOTATION, "UNSAID": UNLABELLED, "X": X}


def rows_of(text):
    """Return rows: ``3 eval =dog @/d/b.jpg, 1 early`` with line, split, annotation and uri.

    ``#7`` is a sort key and ``</e/a.csv`` an import file; a split that is drawn for a row is
    ``train`` with ``early``; ``=`` is no annotation and ``@`` no uri.
    """
    rows = []
    for line, *words in map(str.split, text.split(", ")):
        one = row(int(line))
        for word in words:
            if word == "early":
                one = one._replace(split_hash=EARLY)
            elif word[0] in FIELDS:
                value = int(word[1:]) if word[0] == "#" else NAMED.get(word[1:], word[1:])
                one = one._replace(**{FIELDS[word[0]]: None if word == "=" else value})
            else:
                one = one._replace(split=word)
        rows.append(one)
    return rows


# name: task, rows with one sort key (see `rows_of`), outcome (see `told`)
SAME_PLACE = {
    "one": (IMAGE, "1", "1 test*"),
    "named": (IMAGE, "1 mine", "1 mine"),
    "equal": (IMAGE, "2 @x, 1 @x", "1 test*; duplicates=1"),
    "filled": (IMAGE, "1 =, 2 eval", "1 eval; duplicates=1"),
    "merged": (MULTI, '1 =["a"], 2 =["b"], 3 =["b"]', "1 test*; duplicates=1, merged=1"),
    "a label that another row lacks": (IMAGE, "1 train, 2 train =", "1 train; duplicates=1"),
    "the first file, then line": (IMAGE, "1 train, 2 </d/A.csv", "2 train; duplicates=1"),
    # It is unknown which label is right.
    "labels in two splits": (IMAGE, "1 train, 2 eval =dog", f"1 {OTHER}, 2 {OTHER}"),
    "conflicting splits": (IMAGE, "3 eval, 1 train, 2", "1 train; 3 conflicting_splits; duplicates=1"),
    "conflicting labels": (IMAGE, "1, 2, 3, 4, 5, 6, 7 =dog", ", ".join(f"{line} {OTHER}" for line in range(1, 8))),
    "examples by themselves": (IMAGE, "2 eval @, 1 train =dog @", "1 train, 2 eval"),
    "rows without a uri next to an image": (IMAGE, "10 @ early, 2 @ early, 1, 3", "1 test*, 2 train*, 10 train*; duplicates=1"),
    "files of one name in two folders": (IMAGE, "1 train =a @x.jpg, 1 eval =b @x.jpg </e/a.csv, 2 train =a @/d/x.jpg", "1 eval, 1 train; duplicates=1"),
    "parts": (VIDEO, "2 =TWO, 1 train =ONE, 3 eval =THREE", "1 train, 2 train; 3 conflicting_splits"),
    "parts, all assigned": (VIDEO, "0 =ONE early, 1 =TWO early, 2 =ONE early", "0 train*, 1 train*; duplicates=1"),
    "parts of several groups": (VIDEO, "1 =ONE, 2 =TWO early", "1 test*, 2 test*"),
    "equal texts": (TEXT, "1 =SAID @X, 2 eval =SAID @X", "1 eval, 2 eval"),
    "texts, one without a label": (TEXT, "1 =UNSAID @X, 2 =SAID @X", "1 test*, 2 test*"),
    "one part twice": (VIDEO, "1 train =ONE, 2 eval =ONE", "1 train; 2 conflicting_splits"),
    "parts of two videos": (VIDEO, "1 train =ONE @/1.mp4, 2 =TWO @/1.mp4, 3 eval =ONE @/2.mp4, 4 =TWO @/2.mp4", "1 train, 2 train, 3 eval, 4 eval"),
}  # fmt: skip


@pytest.mark.parametrize(("task", "rows", "expected"), SAME_PLACE.values(), ids=SAME_PLACE)
def test_the_order_of_rows_does_not_matter(task, rows, expected):
    """Rows of one place have one outcome, in whatever order they come."""
    rows = rows_of(rows)
    assert told(rows, task) == told(rows[::-1], task) == expected


def test_rows_of_one_place_are_in_the_order_of_lines():
    """With a uri or without."""
    rows = [row(n, "train", uri="/x.jpg" if n > 40 else "") for n in range(43)]
    assert [line for line, _, _ in outcome(rows).planned] == [*range(42)]


def test_a_reject_names_the_row_that_is_kept():
    """With its file and line."""
    rows = [row(3, "eval", source="/d/b.csv"), row(1, "train")]
    [(line, _, message)] = outcome(rows).rejects
    assert line == 3
    assert f"{rows[1].source}:1" in message


def test_a_share_moves_to_eval():
    """Assigned and named rows move by their hash."""
    end = ConvertOptions(eval_from="train:10").eval_share.end
    rows = rows_of("1 train @/1.jpg #1, 2 train @/2.jpg #2, 3 @/3.jpg #3, 4 test @/4.jpg #4")
    hashes = (end - 1, end, EARLY, EARLY)
    rows = [one._replace(split_hash=at) for one, at in zip(rows, hashes, strict=True)]
    found = told(rows, eval_from="train:10", split=SplitFractions.of("100"))
    assert found == "1 eval*, 2 train, 3 eval*, 4 test; moved=2"


def known(split="train", annotation="cat", uri="/x.jpg", shard="S", source="/d/a.csv"):
    return KnownRow(5, shard, split, source, uri, annotation)


THERE, OTHER_LABEL, OTHER_SPLIT = "existing=1", f"1 {OTHER}", "1 conflicting_splits"
CAT_OR_DOG = [known("eval", "cat"), known("train", "dog", shard="T")]
RELATIVE = [known(uri="x.jpg")]
BOTH_FOLDERS = [*RELATIVE, known("test", "dog", "x.jpg", source="/e/a.csv")]
ELSEWHERE = row(1, uri="x.jpg", source="/e/a.csv")

# name: row, existing examples, outcome
IN_THE_DATASET = {
    "the same": (row(1, "train"), [known()], THERE),
    "no split": (row(1), [known("eval")], THERE),
    "no label": (row(1, None, None), [known()], THERE),
    "another image": (row(1), [known(uri="/y.jpg")], "1 test*"),
    "another label": (row(1, "train", "dog"), [known()], OTHER_LABEL),
    "a label where none is": (row(1, "train", "dog"), [known(annotation=None)], OTHER_LABEL),
    "another split": (row(1, "eval"), [known()], OTHER_SPLIT),
    "no split, and the second has its label": (row(1, None, "dog"), CAT_OR_DOG, THERE),
    "one of two agrees": (row(1, "train", "dog"), CAT_OR_DOG, THERE),
    "neither of two has the label": (row(1, "train", "bird"), CAT_OR_DOG, OTHER_LABEL),
    "the one with the label is in another split": (row(1, "test", "dog"), CAT_OR_DOG, OTHER_SPLIT),
    "relative, of the same folder": (row(1, uri="x.jpg"), RELATIVE, THERE),
    "relative, of another folder": (ELSEWHERE, RELATIVE, "1 test*"),
    "relative, in both folders": (ELSEWHERE, BOTH_FOLDERS, OTHER_LABEL),
    "absolute, two folders": (row(1, source="/e/a.csv"), [known()], THERE),
}


@pytest.mark.parametrize(("one", "there", "expected"), IN_THE_DATASET.values(), ids=IN_THE_DATASET)
def test_examples_that_are_there(one, there, expected):
    """A row whose example is there is counted; one that contradicts it is rejected."""
    assert told([one], known=there) == expected


@pytest.mark.parametrize(
    ("task", "there", "annotation"),
    [(MULTI, '["a"]', '["a", "b"]'), (tasks.ObjectDetection(), CAT, CAT_AND_DOG)],
)
def test_an_example_gets_no_more_labels_or_boxes(task, there, annotation):
    """A row that adds a label or a box to an example that is there contradicts it."""
    assert told([row(1, "train", annotation)], task, known=[known(annotation=there)]) == OTHER_LABEL
    assert told([row(1, "train", there)], task, known=[known(annotation=there)]) == THERE


PART, MOVED = [known(annotation=ONE)], [known("eval", ONE)]
RELATIVE_PART = [known(annotation=ONE, uri="x.mp4")]

# name: row, existing parts of its video, eval_from, outcome
PARTS_THERE = {
    "assigned": ("1 =TWO", PART, None, "1 train*"),
    "named": ("1 train =TWO", PART, None, "1 train"),
    "named otherwise": ("1 eval =TWO", PART, None, OTHER_SPLIT),
    "another folder": ("1 =TWO @x.mp4 </e/a.csv", RELATIVE_PART, None, "1 train*"),
    "another video": ("1 =TWO @/y.mp4", PART, None, "1 test*"),
    "the part itself": ("1 =ONE", PART, None, THERE),
    "the part itself, named": ("1 train =ONE", PART, None, THERE),
    "the part itself, named otherwise": ("1 eval =ONE", PART, None, OTHER_SPLIT),
    "one of two parts": ("1 =ONE", [*PART, known(annotation=TWO)], None, THERE),
    "of a split that gave it": ("1 train =TWO", MOVED, "train:10", "1 eval*; moved=1"),
    "assigned, where rows moved to eval": ("1 =TWO", PART, "train:10", "1 train*"),
    "of a split that gave nothing": ("1 test =TWO", MOVED, "train:10", OTHER_SPLIT),
}


@pytest.mark.parametrize(
    ("one", "there", "share", "expected"), PARTS_THERE.values(), ids=PARTS_THERE
)
def test_a_new_part_joins_the_split_of_its_video(one, there, share, expected):
    """A row with another part of a known video gets its split, or is rejected."""
    assert told(rows_of(one), VIDEO, known=there, eval_from=share) == expected


def test_payloads_of_a_row_are_added_up_and_separated():
    """One missing payload rejects its row."""
    schema = '{"left": "image", "right": "image", "n": "int"}'
    pair = tasks.task_for(ConvertOptions(schema=schema))
    texts = [json.dumps([f"/{name}1.jpg", f"/{name}2.jpg", 1]) for name in "abc"]
    rows = [row(line, "train", text, "", sort_key=line) for line, text in enumerate(texts, start=1)]
    groups, summary = resolve(rows, pair, refused={"/b2.jpg": "gone"})
    [planned] = groups.values()
    assert [(one.line, one.bytes) for one in planned] == [(1, 2 * SIZE), (3, 2 * SIZE)]
    assert [(one.line, one.code, one.message) for one in summary.rejects] == [
        (2, "missing_file", "/b2.jpg: gone")
    ]
    payloads = [(one.uri, one.bytes, one.version) for one in payloads_of(planned[1], pair)]
    assert payloads == [("/c1.jpg", SIZE, "/c1.jpg"), ("/c2.jpg", SIZE, "/c2.jpg")]
    one = PlannedRow(1, CSV, 1, "/x.jpg", "cat", SIZE, "v", False)
    assert payloads_of(one, IMAGE) == [one]
    assert payloads_of(one, VIDEO) == []


def payloads_of(row, task):
    [found] = payload_rows(PlannedBatch(columns_of(PlannedRow, [row])), task)
    return list(found)


def test_a_refusal_that_names_its_payload():
    """The payload is not named twice."""
    pair = tasks.task_for(ConvertOptions(schema='{"left": "image", "right": "image"}'))
    rows, message = [row(1, "train", '["/1.jpg", "/2.jpg"]', "")], "no file: /2.jpg"
    found = outcome(rows, pair, refused={"/2.jpg": message})
    assert found.rejects == [(1, "missing_file", message)]


def test_payloads_in_the_row():
    """A text has the size of its row and never changes; storage is not asked about it."""
    table = Tabular(Table((Column.of("a", "bytes"),)))
    for task, uri, names in ((TEXT, X, 0), (table, "", 15)):
        rows = [row(line, "train", ANNOTATION, uri, sort_key=line) for line in (1, 2)]
        [planned] = resolve(rows, task, refused={uri: "gone"})[0].values()
        size = len(ANNOTATION) + names
        assert [(one.bytes, one.version) for one in planned] == [(size, "row")] * 2


def split_by_content(name):
    options = ConvertOptions()
    return chosen(options.split.fractions, placing(options.seed)(name).split_hash)


def test_splits_by_content():
    """The digest of a file assigns a row without a split; the uri of a text in a row has it."""
    files, texts = [f"/{n}.jpg" for n in range(30)], [content_uri(str(n)) for n in range(30)]
    for task, said, uris, digest in (
        (IMAGE, "cat", files, digest_of),
        (TEXT, ANNOTATION, texts, content_digest),
    ):
        rows = [row(n, None, said, uri, sort_key=n, split_hash=EARLY) for n, uri in enumerate(uris)]
        expected = [(n, split_by_content(digest(uri)), True) for n, uri in enumerate(uris)]
        assert {split for _, split, _ in expected} == {"train", "eval", "test"}
        assert sorted(outcome(rows, task, group_by="content").planned) == expected


def test_files_of_rows_whose_split_is_known_are_not_read():
    """Unless a share of their split may move."""
    asked = []

    def contents(rows):
        asked.extend(one.uri for one in rows)
        refused = PayloadError("changed", "other bytes")
        return [refused if one.uri == "/2.jpg" else Content(b"a") for one in rows]

    def of(share):
        asked.clear()
        rows = rows_of("1 train @/1.jpg #1, 2 @/2.jpg #2, 3 @/3.jpg #3, 4 test @/4.jpg #4")
        rows[2] = rows[2]._replace(addresses='["/signed/3"]')
        return told(rows, contents=contents, group_by="content", eval_from=share)

    assert of(None) == f"1 train, 3 {split_by_content(b'a')}*, 4 test; 2 changed"
    assert asked == ["/2.jpg", "/signed/3"]
    of("train:10")
    assert asked == ["/1.jpg", "/2.jpg", "/signed/3"]


def test_texts_in_rows_are_payloads_of_their_own():
    """Equal ones are copies, also of a file; rows that name one file are not."""
    uris = [X, X, "/x.txt", content_uri("y")]
    rows = [row(n, "train", ANNOTATION, uri, sort_key=ord(uri[-1])) for n, uri in enumerate(uris)]
    given = {"contents": lambda asked: [Content(content_digest(X)) for _ in asked]}
    assert told(rows, TEXT, duplicates="drop", **given) == "0 train, 3 train; duplicates=2"
    table = tasks.task_for(ConvertOptions(schema='{"photo": "image", "n": "int"}'))
    rows = [row(n, "train", f"[{n}]") for n in (1, 2)]
    assert outcome(rows, table, duplicates="drop").counts == {}


def test_an_empty_bucket_has_the_columns_of_others():
    """Runners can join it with them."""
    options = {"group_by": "near", "duplicates": "drop"}
    splits = split_settings(**options)
    empty, other = (settle(rows, IMAGE, **options).rows for rows in ([], [row(1)]))
    assert empty.schema == other.schema
    assert facts_of(empty, IMAGE, splits).schema == facts_of(other, IMAGE, splits).schema
    nothing = BucketSummary({}, {}, {}, RowCounts())
    for stratify in ("label", "none"):
        assert resolve([], stratify=stratify, eval_from="train:10") == ({}, nothing)
