"""The rows of one bucket: each case with its whole outcome."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import pytest

from recordgen.core.dataset.counts import RowCounts
from recordgen.core.dataset.fractions import SplitFractions
from recordgen.core.planning.plan import BucketSummary
from recordgen.core.rows.columns import PlannedBatch, columns_of
from recordgen.core.rows.placing import placing
from recordgen.core.rows.planned import Group, KnownRow, PlacedRow, PlannedRow
from recordgen.core.rows.row import content_uri
from recordgen.core.shards.rows import payload_rows
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.payloads.fetching import Content
from recordgen.rejects import Reject
from recordgen.storage import FileInfo
from recordgen.tasks import (
    ImageClassification,
    ImageMultiLabel,
    ObjectDetection,
    TextClassification,
    VideoClassification,
    task_for,
)
from tests.planned import chosen, resolved

IMAGE, VIDEO, TEXT = ImageClassification(), VideoClassification(), TextClassification()
CSV = "/d/a.csv"
LATE = (1 << 64) - 1  # the last split hash: test, and no share moves it
EARLY = 0  # the first split hash: train, and every share moves it
SIZE = 7


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


def resolve(rows, task=IMAGE, *, known=(), drop_unnamed=False, refused=(), **options):
    """Resolve a bucket whose payloads have ``SIZE`` bytes, and their uri as content."""

    def infos(uris, _):
        return [
            PayloadError("missing_file", "gone") if uri in refused else FileInfo(SIZE, uri)
            for uri in uris
        ]

    return resolved(
        rows,
        options=ConvertOptions(**options),
        task=task,
        drop_unnamed=drop_unnamed,
        infos=infos,
        contents=lambda asked: [Content(one.uri.encode()) for one in asked],
        known=list(known),
    )


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


CAT = '[["cat",0.0,0.0,0.5,0.5]]'
CAT_AND_DOG = '[["cat",0.0,0.0,0.5,0.5],["dog",0.0,0.0,0.5,0.5]]'

# task; annotations of the rows of one uri, and the splits; the merged annotation; duplicates;
# merged; rejects
ADDING = [
    (ImageMultiLabel(), ['["a"]', '["b"]', None, '["a", "b"]'], "....", '["a", "b"]', 2, 1, 0),
    (ImageMultiLabel(), [None, None], "..", None, 1, 0, 0),
    (ImageMultiLabel(), ['["a"]', '["b"]', '["c"]'], "te.", '["a", "b", "c"]', 0, 2, 0),
    (ObjectDetection(), [CAT, CAT_AND_DOG, CAT, None], "...t", CAT_AND_DOG, 2, 1, 0),
    (ObjectDetection(), [None, CAT], "..", CAT, 0, 1, 0),
]


@pytest.mark.parametrize(
    ("task", "annotations", "splits", "together", "duplicates", "merged", "rejects"), ADDING
)
def test_rows_of_one_uri_add_up(task, annotations, splits, together, duplicates, merged, rejects):
    names = {".": None, "t": "train", "e": "eval"}
    rows = [
        row(line, names[split], annotation)
        for line, (annotation, split) in enumerate(zip(annotations, splits, strict=True), start=1)
    ]
    groups, summary = resolve(rows[::-1], task)
    [[kept]] = groups.values()
    assert (kept.line, kept.annotation) == (1, together)
    counts = summary.counts
    found = (counts.duplicates, counts.merged, counts.rejects)
    assert found == (duplicates, merged, rejects)


FIRST_FIVE = ", ".join(f"{CSV}:{line}" for line in range(1, 6))
SPLITS = f"split 'eval' contradicts 'train' of {CSV}:1, which is kept"
SEGMENTS = ['["a", 0.0, 1.0]', '["b", 1.0, 2.0]', '["c", 2.0, 3.0]']

# name: task, rows with one sort key, outcome
SAME_PLACE = {
    "one": (IMAGE, [row(1)], Outcome([(1, "test", True)])),
    "named": (IMAGE, [row(1, "mine")], Outcome([(1, "mine", False)])),
    "equal": (IMAGE, [row(2), row(1)], Outcome([(1, "test", True)], [], {"duplicates": 1})),
    "filled": (
        IMAGE,
        [row(1, None, None), row(2, "eval", "cat")],
        Outcome([(1, "eval", False)], [], {"duplicates": 1}),
    ),
    "merged": (
        ImageMultiLabel(),
        [row(1, None, '["a"]'), row(2, None, '["b"]'), row(3, None, '["b"]')],
        Outcome([(1, "test", True)], [], {"duplicates": 1, "merged": 1}),
    ),
    "a label that another row lacks": (
        IMAGE,
        [row(1, "train"), row(2, "train", None)],
        Outcome([(1, "train", False)], [], {"duplicates": 1}),
    ),
    "the first file, then the first line": (
        IMAGE,
        [row(1, "train"), row(2, source="/d/A.csv")],
        Outcome([(2, "train", False)], [], {"duplicates": 1}),
    ),
    # It is unknown which label is right.
    "conflicting labels in two splits": (
        IMAGE,
        [row(1, "train"), row(2, "eval", "dog")],
        Outcome(
            [],
            [
                (
                    line,
                    "conflicting_labels",
                    f"one image, several labels: 'cat', 'dog' in {CSV}:1, {CSV}:2; keep one",
                )
                for line in (1, 2)
            ],
        ),
    ),
    "conflicting splits": (
        IMAGE,
        [row(3, "eval"), row(1, "train"), row(2)],
        Outcome([(1, "train", False)], [(3, "conflicting_splits", SPLITS)], {"duplicates": 1}),
    ),
    "conflicting labels": (
        IMAGE,
        [row(line, None, "cat" if line < 7 else "dog") for line in range(1, 8)],
        Outcome(
            [],
            [
                (
                    line,
                    "conflicting_labels",
                    f"one image, several labels: 'cat', 'dog' in {FIRST_FIVE}; keep one",
                )
                for line in range(1, 8)
            ],
        ),
    ),
    "examples by themselves": (
        IMAGE,
        [row(2, "eval", uri=""), row(1, "train", "dog", uri="")],
        Outcome([(1, "train", False), (2, "eval", False)]),
    ),
    "rows without a uri next to an image": (
        IMAGE,
        [row(10, uri="", split_hash=1), row(2, uri="", split_hash=1), row(1), row(3)],
        Outcome(
            [(1, "test", True), (2, "train", True), (10, "train", True)], [], {"duplicates": 1}
        ),
    ),
    "files of one name in two folders": (
        IMAGE,
        [
            row(1, "train", "a", "x.jpg"),
            row(1, "eval", "b", "x.jpg", source="/e/a.csv"),
            row(2, "train", "a", "/d/x.jpg"),
        ],
        Outcome([(1, "eval", False), (1, "train", False)], [], {"duplicates": 1}),
    ),
    "parts": (
        VIDEO,
        [row(2, None, SEGMENTS[1]), row(1, "train", SEGMENTS[0]), row(3, "eval", SEGMENTS[2])],
        Outcome(
            [(1, "train", False), (2, "train", False)],
            [(3, "conflicting_splits", SPLITS)],
        ),
    ),
    "parts, all assigned": (
        VIDEO,
        [row(1, None, SEGMENTS[0]), row(2, None, SEGMENTS[1]), row(3, None, SEGMENTS[1])],
        Outcome([(1, "test", True), (2, "test", True)], [], {"duplicates": 1}),
    ),
    "one part twice": (
        VIDEO,
        [row(1, "train", SEGMENTS[0]), row(2, "eval", SEGMENTS[0])],
        Outcome([(1, "train", False)], [(2, "conflicting_splits", SPLITS)]),
    ),
    "parts of two videos": (
        VIDEO,
        [
            row(1, "train", SEGMENTS[0], "/1.mp4"),
            row(2, None, SEGMENTS[1], "/1.mp4"),
            row(3, "eval", SEGMENTS[0], "/2.mp4"),
            row(4, None, SEGMENTS[1], "/2.mp4"),
        ],
        Outcome([(1, "train", False), (2, "train", False), (3, "eval", False), (4, "eval", False)]),
    ),
}


@pytest.mark.parametrize("name", SAME_PLACE)
def test_the_order_of_rows_does_not_matter(name):
    task, rows, expected = SAME_PLACE[name]
    for given in (rows, rows[::-1]):
        found = outcome(given, task)
        assert replace(found, planned=sorted(found.planned)) == expected


def test_rows_of_different_places_do_not_interact():
    rows = [row(line, "train", "cat", f"/{line}.jpg", sort_key=9 - line) for line in range(1, 6)]
    twice = [one._replace(line=one.line + 10) for one in rows]
    groups, summary = resolve([*rows, *twice])
    assert groups == {
        Group("train", None): [
            PlannedRow(9 - line, CSV, line, f"/{line}.jpg", "cat", SIZE, f"/{line}.jpg", False)
            for line in range(5, 0, -1)
        ]
    }
    assert summary == BucketSummary(
        {Group("train", None): 5},
        {Group("train", None): 35},
        {"cat": 5},
        RowCounts(duplicates=5),
    )


def test_each_label_of_a_split_is_a_group():
    rows = [
        row(line, split, label, f"/{line}.jpg", sort_key=line)
        for line, (split, label) in enumerate(
            [("train", "a"), ("train", None), ("eval", "a"), ("train", "a"), ("train", "b")]
        )
    ]
    groups, summary = resolve(rows, shard_by="label")
    lines = {group: [one.line for one in found] for group, found in groups.items()}
    assert lines == {
        ("train", "a"): [0, 3],
        ("train", ""): [1],
        ("eval", "a"): [2],
        ("train", "b"): [4],
    }
    assert summary.rows == {group: len(found) for group, found in lines.items()}
    assert summary.bytes == {group: SIZE * len(found) for group, found in lines.items()}
    assert summary.labels == {"a": 3, "b": 1}


def test_rows_without_a_split_are_dropped_on_request():
    rows = [row(1, None, uri="/1.jpg", sort_key=1), row(2, "eval", uri="/2.jpg", sort_key=2)]
    found = outcome(rows, drop_unnamed=True, refused={"/1.jpg"})
    assert found == Outcome([(2, "eval", False)], [], {"dropped": 1})


def test_a_share_moves_to_eval():
    rows = [
        row(1, "train", uri="/1.jpg", split_hash=EARLY),
        row(2, "train", uri="/2.jpg", split_hash=LATE),
        row(3, None, uri="/3.jpg", split_hash=EARLY),
        row(4, "test", uri="/4.jpg", split_hash=EARLY),
    ]
    rows = [one._replace(sort_key=one.line) for one in rows]
    found = outcome(rows, eval_from="train:10", split=SplitFractions.of("100"))
    assert found.counts == {"moved": 2}
    assert sorted(found.planned) == [
        (1, "eval", True),
        (2, "train", False),
        (3, "eval", True),
        (4, "test", False),
    ]


def known(split="train", annotation="cat", uri="/x.jpg", shard="S", source="/d/a.csv"):
    return KnownRow(5, shard, split, source, uri, annotation)


REMEDY = "convert all rows again"


def stays(what, shard="S"):
    return f"{shard} already has it with {what}, and append never changes an example; {REMEDY}"


def planned(split, *, assigned=True):
    return Outcome([(1, split, assigned)])


def refused(code, message):
    return Outcome([], [(1, code, message)])


THERE = Outcome([], [], {"existing": 1})
OTHER_LABEL = refused("conflicting_labels", stays("label 'cat'"))
OTHER_SPLIT = refused("conflicting_splits", stays("split 'train'"))
CAT_OR_DOG = [known("eval", "cat"), known("train", "dog", shard="T")]
RELATIVE = [known(uri="x.jpg")]
ELSEWHERE = row(1, uri="x.jpg", source="/e/a.csv")

# name: row, existing examples, outcome
IN_THE_DATASET = {
    "the same": (row(1, "train"), [known()], THERE),
    "no split": (row(1), [known("eval")], THERE),
    "no label": (row(1, None, None), [known()], THERE),
    "another image": (row(1), [known(uri="/y.jpg")], planned("test")),
    "another label": (row(1, "train", "dog"), [known()], OTHER_LABEL),
    "a label where none is": (
        row(1, "train", "dog"),
        [known(annotation=None)],
        refused("conflicting_labels", stays("no label")),
    ),
    "another split": (row(1, "eval"), [known()], OTHER_SPLIT),
    "one of two agrees": (row(1, "train", "dog"), CAT_OR_DOG, THERE),
    "neither of two has the label": (row(1, "train", "bird"), CAT_OR_DOG, OTHER_LABEL),
    "the one with the label is in another split": (
        row(1, "test", "dog"),
        [known("test", "cat"), known("train", "dog", shard="T")],
        refused("conflicting_splits", stays("split 'train'", "T")),
    ),
    "relative, of the same folder": (row(1, uri="x.jpg"), RELATIVE, THERE),
    "relative, of another folder": (ELSEWHERE, RELATIVE, planned("test")),
    "relative, in both folders": (
        ELSEWHERE,
        [*RELATIVE, known("test", "dog", "x.jpg", source="/e/a.csv")],
        refused("conflicting_labels", stays("label 'dog'")),
    ),
    "absolute, two folders": (row(1, source="/e/a.csv"), [known()], THERE),
}


@pytest.mark.parametrize("name", IN_THE_DATASET)
def test_examples_that_are_there(name):
    one, there, expected = IN_THE_DATASET[name]
    assert outcome([one], known=there) == expected


def test_a_rejected_row_does_not_stop_others():
    rows = [
        row(1, "eval", uri="a.jpg", sort_key=1),
        row(2, "eval", uri="/b.jpg", sort_key=2),
        row(3, "train", uri="/c.jpg", sort_key=3),
        row(4, "train", uri="/d.jpg", sort_key=4),
    ]
    there = [known(uri=uri) for uri in ("a.jpg", "/b.jpg", "/c.jpg")]
    assert outcome(rows, known=there) == Outcome(
        [(4, "train", False)],
        [
            (1, "conflicting_splits", stays("split 'train'")),
            (2, "conflicting_splits", stays("split 'train'")),
        ],
        {"existing": 1},
    )


BESIDE = "split {!r} contradicts {!r} of its other parts in S, and append never changes an example"
PART = [known(annotation=SEGMENTS[0])]

# name: row, existing parts of its video, eval_from, outcome
PARTS_IN_THE_DATASET = {
    "assigned": (row(1, None, SEGMENTS[1]), PART, "", planned("train")),
    "named": (row(1, "train", SEGMENTS[1]), PART, "", planned("train", assigned=False)),
    "named otherwise": (
        row(1, "eval", SEGMENTS[1]),
        PART,
        "",
        refused("conflicting_splits", BESIDE.format("eval", "train")),
    ),
    "relative, of another folder": (
        row(1, None, SEGMENTS[1], "x.mp4", source="/e/a.csv"),
        [known(annotation=SEGMENTS[0], uri="x.mp4")],
        "",
        planned("train"),
    ),
    "another video": (row(1, None, SEGMENTS[1], "/y.mp4"), PART, "", planned("test")),
    "the part itself": (row(1, None, SEGMENTS[0]), PART, "", THERE),
    "the part itself, named": (row(1, "train", SEGMENTS[0]), PART, "", THERE),
    "the part itself, named otherwise": (row(1, "eval", SEGMENTS[0]), PART, "", OTHER_SPLIT),
    "one of two parts": (
        row(1, None, SEGMENTS[0]),
        [*PART, known(annotation=SEGMENTS[1])],
        "",
        THERE,
    ),
    "of a split that gave it to eval": (
        row(1, "train", SEGMENTS[1]),
        [known("eval", SEGMENTS[0])],
        "train:10",
        Outcome([(1, "eval", True)], [], {"moved": 1}),
    ),
    "assigned, where rows moved to eval": (
        row(1, None, SEGMENTS[1]),
        PART,
        "train:10",
        planned("train"),
    ),
    "of another split than the one that gave": (
        row(1, "test", SEGMENTS[1]),
        [known("eval", SEGMENTS[0])],
        "train:10",
        refused("conflicting_splits", BESIDE.format("test", "eval")),
    ),
}


@pytest.mark.parametrize("name", PARTS_IN_THE_DATASET)
def test_a_new_part_joins_the_split_of_its_video(name):
    one, there, share, expected = PARTS_IN_THE_DATASET[name]
    assert outcome([one], VIDEO, known=there, eval_from=share or None) == expected


def test_beside_what_is_there_other_rows_are_drawn():
    """Rows of other videos, or without a uri, move and are assigned as without a dataset."""
    rows = [
        row(1, None, SEGMENTS[1], split_hash=EARLY, sort_key=1),
        row(2, "train", SEGMENTS[1], "/y.mp4", split_hash=EARLY, sort_key=2),
        row(3, None, SEGMENTS[1], "", split_hash=LATE, sort_key=3),
        row(4, "eval", SEGMENTS[2], sort_key=4),
        row(5, "train", SEGMENTS[2], "/y.mp4", split_hash=LATE, sort_key=5),
    ]
    found = outcome(rows, VIDEO, known=PART, eval_from="train:10")
    assert found.rejects == [(4, "conflicting_splits", BESIDE.format("eval", "train"))]
    assert found.counts == {"moved": 1}
    assert sorted(found.planned) == [
        (1, "train", True),
        (2, "eval", True),
        (3, "test", True),
        (5, "train", False),
    ]


def test_images_that_the_split_gave_to_eval():
    there = [known("eval")]
    assert outcome([row(1, "train")], known=there, eval_from="train:10") == THERE
    refused = outcome([row(1, "test")], known=there, eval_from="train:10").rejects
    assert refused == [(1, "conflicting_splits", stays("split 'eval'"))]


def test_payloads_of_a_row_are_added_up_and_separated():
    schema = '{"left": "image", "right": "image", "n": "int"}'
    pair = task_for(ConvertOptions(schema=schema))
    texts = [json.dumps([f"/{name}1.jpg", f"/{name}2.jpg", 1]) for name in "abc"]
    rows = [row(line, "train", text, "", sort_key=line) for line, text in enumerate(texts, start=1)]
    groups, summary = resolve(rows, pair, refused={"/b2.jpg"})
    [planned] = groups.values()
    assert [(one.line, one.bytes) for one in planned] == [(1, 2 * SIZE), (3, 2 * SIZE)]
    assert [(one.line, one.code, one.message) for one in summary.rejects] == [
        (2, "missing_file", "/b2.jpg: gone")
    ]
    parts = payloads_of(planned[1], pair)
    assert [(one.uri, one.bytes, one.version) for one in parts] == [
        ("/c1.jpg", SIZE, "/c1.jpg"),
        ("/c2.jpg", SIZE, "/c2.jpg"),
    ]
    one = PlannedRow(1, CSV, 1, "/x.jpg", "cat", SIZE, "v", False)
    assert payloads_of(one, IMAGE) == [one]
    assert payloads_of(one, VIDEO) == []


def payloads_of(row, task):
    [found] = payload_rows(PlannedBatch(columns_of(PlannedRow, [row])), task)
    return list(found)


def test_refused_payloads_are_rejects_of_their_row():
    rows = [row(1, "train", uri="/1.jpg", sort_key=1), row(2, "train", uri="/2.jpg", sort_key=2)]
    groups, summary = resolve(rows, refused={"/1.jpg"})
    assert summary.rejects == (Reject(CSV, 1, "/1.jpg", "missing_file", "gone"),)
    assert [one.line for one in groups[Group("train", None)]] == [2]


def test_a_refusal_that_names_its_payload():
    """The payload is not named twice."""
    pair = task_for(ConvertOptions(schema='{"left": "image", "right": "image"}'))
    _, summary = resolved(
        [row(1, "train", '["/1.jpg", "/2.jpg"]', "")],
        options=ConvertOptions(),
        task=pair,
        drop_unnamed=False,
        infos=lambda *_: [FileInfo(1, "v"), PayloadError("missing_file", "no file: /2.jpg")],
        contents=lambda asked: [],
    )
    assert [one.message for one in summary.rejects] == ["no file: /2.jpg"]


ANNOTATION = '{"text": "x", "said": ["a"]}'


def test_payloads_in_the_row():
    """A text has the size of its row and never changes; storage is not asked about it."""
    uri = content_uri("text")
    rows = [row(line, "train", ANNOTATION, uri, sort_key=line) for line in (1, 2)]
    [planned] = resolve(rows, TEXT, refused={uri})[0].values()
    assert [(one.bytes, one.version) for one in planned] == [(len(ANNOTATION), "row")] * 2


def split_by_content(name):
    options = ConvertOptions()
    return chosen(options.split.fractions, placing(options.seed)(name).split_hash)


def test_splits_by_content():
    """The content assigns rows without a split; payloads of rows that name one are not read."""
    uris = [f"/{number}.jpg" for number in range(30)]
    rows = [row(n, None, "cat", uri, sort_key=n, split_hash=EARLY) for n, uri in enumerate(uris)]
    expected = [(n, split_by_content(uri.encode()), True) for n, uri in enumerate(uris)]
    assert {split for _, split, _ in expected} == {"train", "eval", "test"}
    assert sorted(outcome(rows, group_by="content").planned) == expected

    asked = []

    def contents(rows):
        asked.extend(one.uri for one in rows)
        refused = PayloadError("changed", "other bytes")
        return [refused if one.uri == "/2.jpg" else Content(b"a") for one in rows]

    def of(share):
        asked.clear()
        groups, summary = resolved(
            [
                row(1, "train", uri="/1.jpg", sort_key=1),
                row(2, None, uri="/2.jpg", sort_key=2),
                row(3, None, uri="/3.jpg", sort_key=3),
                row(4, "test", uri="/4.jpg", sort_key=4),
            ],
            options=ConvertOptions(group_by="content", eval_from=share),
            task=IMAGE,
            drop_unnamed=False,
            infos=lambda uris, sources: [FileInfo(1, "v")] * len(uris),
            contents=contents,
        )
        rejects = [(one.line, one.code, one.message) for one in summary.rejects]
        return [(one.line, group.split) for group in groups for one in groups[group]], rejects

    planned, rejects = of(None)
    assert asked == ["/2.jpg", "/3.jpg"]
    assert planned == [(1, "train"), (3, split_by_content(b"a")), (4, "test")]
    assert rejects == [(2, "changed", "other bytes")]
    of("train:10")
    assert asked == ["/1.jpg", "/2.jpg", "/3.jpg"]


def test_texts_by_content():
    """The digest in the uri of a text is its content."""
    texts = [f"text {number}" for number in range(30)]
    rows = [
        row(n, None, ANNOTATION, content_uri(text), sort_key=n, split_hash=EARLY)
        for n, text in enumerate(texts)
    ]
    expected = [
        (n, split_by_content(bytes.fromhex(content_uri(text).removeprefix("sha256://"))), True)
        for n, text in enumerate(texts)
    ]
    assert len({split for _, split, _ in expected}) == 3
    assert sorted(outcome(rows, TEXT, group_by="content").planned) == expected
    named = [row(1, "mine", ANNOTATION, content_uri("x"))]
    assert outcome(named, TEXT, group_by="content").planned == [(1, "mine", False)]
