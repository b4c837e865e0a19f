"""Planning: rows → splits, shards. Pure functions."""

import re
from contextlib import nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordgen.core.dataset.counts import RowCounts
from recordgen.core.planning import plan as plans
from recordgen.core.planning.plan import Base, BucketSummary, GroupPlan, check_train, too_many
from recordgen.core.rows.columns import columns_of, in_planned_order, rows_of, together
from recordgen.core.rows.row import Group, PlacedRow, PlannedRow, Row, placing
from recordgen.errors import DataError, LintError, NotUnderstoodError, UsageError
from recordgen.options import ConvertOptions
from recordgen.payloads.fetching import Content
from recordgen.storage import FileInfo
from recordgen.tasks import ImageClassification
from tests.conftest import error_of
from tests.planned import bucket_of, plan_of, resolve_bucket


def plan_all(rows, sizes, options, buckets):
    """Plan rows as the pipeline does, without Beam, and return them by (split, label, shard)."""
    place = placing(options.seed)
    by_bucket = {}
    for row in rows:
        placed = PlacedRow(*place(row.uri), *row[:5])
        by_bucket.setdefault(bucket_of(placed.sort_key, buckets), []).append(placed)
    summaries, files, contents = [], [], {}
    for bucket, placed in by_bucket.items():
        planned, summary = resolve_bucket(
            columns_of(PlacedRow, placed),
            options=options,
            task=ImageClassification(),
            drop_unnamed=False,
            infos=lambda uris, sources: [FileInfo(sizes[uri], "1") for uri in uris],
            contents=lambda asked: [Content(row.uri.encode()) for row in asked],
        )
        summaries.append(summary)
        name = str(bucket)
        contents[name], blocks = plans.encode_bucket(planned)
        files.append(plans.BucketFile(bucket, name, blocks))
    plan = plan_of(summaries, read=RowCounts(len(rows)), options=options)
    shards = {}
    for outline in plans.cut(plan, files):
        read = [contents[at.file][at.offset :][: at.length] for at in outline.byte_ranges]
        parts = together(PlannedRow, plans.planned_rows(outline, read))
        if found := list(rows_of(PlannedRow, parts)):
            shards[outline.split, outline.label, outline.index] = found
    return shards


@pytest.mark.parametrize(
    ("size", "letters", "blocks"), [(1, 0, 2), (1, 500, 3), (400, 0, 3), (40_000, 0, 20)]
)
def test_blocks_of_small_rows_have_many(size, letters, blocks):
    """A block has few megabytes of payloads and annotations, but never very few rows."""
    row = PlannedRow(1, "a.csv", 1, "", "x" * letters, size, "", assigned=False)
    group = Group("train", None)
    _, found = plans.encode_bucket({group: columns_of(PlannedRow, [row] * 20_000)})
    assert len(found[group]) == blocks


LABELLED_SIZES = st.lists(
    st.tuples(st.sampled_from(["cat", "dog", "10", None]), st.integers(1, 3_000_000)),
    min_size=1,
    max_size=40,
)
SHARD_MB = st.sampled_from([0.5, 2.0, 128.0])


def rows_for(labelled):
    """Return one row for each (label, size), without a split, and the sizes by uri."""
    rows = [Row("a", n, None, f"{n}.jpg", label) for n, (label, _) in enumerate(labelled)]
    return rows, {f"{n}.jpg": size for n, (_, size) in enumerate(labelled)}


@settings(max_examples=30)
@given(LABELLED_SIZES, st.integers(0, 5), SHARD_MB, st.sampled_from(["hash", "label"]))
def test_plan_does_not_depend_on_buckets(labelled, seed, shard_mb, shard_by):
    """Shards are the same, and hold every row once."""
    rows, sizes = rows_for(labelled)
    options = ConvertOptions(seed=seed, shard_mb=shard_mb, shard_by=shard_by)
    one = plan_all(rows, sizes, options, buckets=1)
    assert plan_all(rows, sizes, options, buckets=7) == one
    uris = [row.uri for shard in one.values() for row in shard]
    assert sorted(uris) == sorted(sizes)


@settings(max_examples=25)
@given(LABELLED_SIZES, SHARD_MB)
def test_a_label_has_the_shards_that_it_would_have_alone(labelled, shard_mb):
    """Other labels do not affect its shards."""
    rows, sizes = rows_for(labelled)
    options = ConvertOptions(shard_mb=shard_mb, shard_by="label")
    together = plan_all(rows, sizes, options, buckets=7)
    for label in {row.annotation for row in rows}:
        own = [row for row in rows if row.annotation == label]
        alone = plan_all(own, sizes, ConvertOptions(shard_mb=shard_mb), buckets=7)
        for split in {split for split, _, _ in alone}:
            ours = [shard for key, shard in together.items() if key[:2] == (split, label or "")]
            assert ours == [shard for key, shard in alone.items() if key[0] == split]


# bytes of a group, its rows, the number of its shards of 100 bytes
CUTS = [(1, 9, 1), (100, 9, 1), (101, 9, 2), (200, 9, 2), (201, 9, 3), (9000, 2, 2), (0, 3, 1)]


@pytest.mark.parametrize(("size", "rows", "shards"), CUTS)
def test_shards_are_not_larger_than_the_target_on_average(size, rows, shards):
    """A byte more needs another shard."""
    group = Group("train", None)
    summary, options = BucketSummary({group: rows}, {group: size}), ConvertOptions(shard_mb=0.0001)
    plan = plan_of([summary], read=RowCounts(rows), options=options)
    assert plan.splits["train"].shards == shards


def test_bytes_fall_into_shards_of_equal_size():
    """The first byte of a row decides."""
    group = GroupPlan(rows=9, bytes=100, first=5, shards=4)
    ends = [0, 24, 25, 49, 50, 74, 75, 99, 100, 1000]
    assert [group.shard_at(at) for at in ends] == [5, 5, 6, 6, 7, 7, 8, 8, 8, 8]
    assert GroupPlan(rows=2, bytes=0, first=1, shards=1).shard_at(0) == 1
    assert GroupPlan(rows=3, bytes=1, first=0, shards=3).shard_at(0) == 0


# rejects, rows read, the largest allowed share, whether the run fails
SHARES = [(1, 100, 0.01, False), (2, 100, 0.01, True), (0, 0, 0.0, False), (1, 1, 1.0, False)]


@pytest.mark.parametrize(("rejects", "read", "share", "fails"), SHARES)
def test_the_allowed_share_of_rejects_is_still_allowed(rejects, read, share, fails):
    """Only more of them fail."""
    assert too_many(rejects, read, share) == fails


def test_too_many_labels_for_shards_of_their_own():
    """The limit is that of one dataset."""
    options = ConvertOptions(shard_by="label")
    rows = {Group("train", f"{n:05d}"): 1 for n in range(10_000)}
    summary = BucketSummary(rows, rows)
    plan = plan_of([summary], read=RowCounts(10_000), options=options)
    assert plan.splits["train"].shards == 10_000
    other = BucketSummary({Group("eval", "0"): 1}, {Group("eval", "0"): 1})
    with pytest.raises(DataError, match=r"10,001 .* 10,000 .*shard_by=hash"):
        plan_of([summary, other], read=RowCounts(10_001), options=options)


THERE = Base({"train": 1})

# rows by split, rows of eval that were moved, the existing dataset, the error
EVAL_FROM = [
    ({"train": 9, "eval": 2}, 2, Base(), None),
    ({"train": 9, "eval": 3}, 2, Base(), " eval, .* 1 .*split=100"),
    ({"train": 9, "eval": 3}, 2, THERE, " eval, .* 1 .*split=100"),
    ({"eval": 2000}, 0, Base(), " eval, .* 2,000 .*split=100"),
    ({"eval": 2}, 2, Base(), None),
    ({"train": 2, "eval": 2}, 2, Base(), None),
    ({}, 0, Base(), None),
    ({"test": 1, "mine": 1}, 0, Base(), "'train'.* test, mine"),
    ({"test": 1}, 0, THERE, None),
]


@pytest.mark.parametrize(("rows", "moved", "base", "message"), EVAL_FROM, ids=range(len(EVAL_FROM)))
def test_rows_that_eval_from_needs(rows, moved, base, message):
    """A split that receives rows has no rows of its own."""

    def plan():
        # Counts by label and of two buckets are added up.
        counts = {Group(split, "a"): count // 2 for split, count in rows.items()}
        rest = {Group(split, "b"): count - count // 2 for split, count in rows.items()}
        options = ConvertOptions(eval_from="train:10")
        first = BucketSummary(counts, counts, moved=moved // 2)
        other = BucketSummary(rest, rest, moved=moved - moved // 2)
        return plan_of([first, other], read=RowCounts(9), options=options, base=base)

    if message is None:
        assert {split: found.rows for split, found in plan().splits.items()} == rows
        return
    with pytest.raises(UsageError, match=f"^eval_from=train:10.*{message}"):
        plan()


# splits of the rows, their labels, existing shards, what is refused, the error
LACKS = [
    (["train", "test"], {"a": 1}, {}, "without_eval", LintError),
    (["train", "eval"], {"a": 1}, {}, "without_eval", None),
    (["test"], {"a": 1}, {}, "without_eval", None),
    (["train"], {}, {"eval": 1}, "without_eval", None),
    (["train"], {}, {}, "missing", DataError),
    (["train"], {"a": 1}, {}, "missing", None),
    (["train"], {}, {"eval": 1}, "missing", None),
    ([], {}, {}, "missing", None),
]


@pytest.mark.parametrize(("splits", "labels", "there", "refused", "error"), LACKS)
def test_rows_without_eval_or_labels(splits, labels, there, refused, error):
    """Each lack is an error where it is refused."""
    rows = {Group(split, None): 1 for split in splits}
    given = {"options": ConvertOptions(), "base": Base(there), refused: "the remedy"}
    with pytest.raises(error, match="the remedy") if error else nullcontext():
        plan_of([BucketSummary(rows, rows, labels)], read=RowCounts(9), **given)


def test_rows_that_all_name_other_splits_than_train():
    """The error counts them, and its command keeps the splits that they name."""

    def plan(*splits):
        rows = {Group(split, None): 1200 for split in splits}
        return plan_of([BucketSummary(rows, rows)], read=RowCounts(9), options=ConvertOptions())

    for splits in ((), ("train", "eval")):
        check_train(plan(*splits), "the remedy")
    refused = error_of(NotUnderstoodError, check_train, plan("test", "eval"), "the remedy")
    assert re.search(r"eval \(1,200\).* test \(1,200\).*the remedy", refused.reason)
    assert refused.options == {"split": "names=yes"}


@pytest.mark.parametrize("uris", [("b", "a", "a", "z"), ("", "", "", "")])
def test_rows_of_one_place_lie_by_uri_and_file(uris):
    """Then by line."""
    named = [(7, uris[0], "1.csv"), (7, uris[1], "2.csv"), (7, uris[2], "1.csv"), (9, uris[3], "")]
    rows = [PlannedRow(key, file, 1, uri, None, 1, "", True) for key, uri, file in named]
    ordered = list(rows_of(PlannedRow, in_planned_order(columns_of(PlannedRow, rows))))
    assert ordered == ([rows[2], rows[1], rows[0], rows[3]] if any(uris) else rows)


def test_shards_are_equal_in_bytes():
    """To within two rows."""
    sizes = {f"{n}.jpg": 1000 + 97 * (n % 50) for n in range(4000)}
    rows = [Row("a", n, "train", uri, None) for n, uri in enumerate(sizes)]
    shards = plan_all(rows, sizes, ConvertOptions(shard_mb=0.5), buckets=16)
    assert plan_all(rows, sizes, ConvertOptions(shard_mb=0.5), buckets=1) == shards  # four blocks
    totals = [sum(row.bytes for row in shard) for shard in shards.values()]
    assert len(totals) == -(-sum(sizes.values()) // 500_000)
    assert max(totals) - min(totals) <= 2 * max(sizes.values())
