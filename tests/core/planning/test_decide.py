"""Decisions that need all rows: the shares of each class, and copies of a payload."""

import re
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordgen
from recordgen.core.dataset.splits import SPLITS, SplitFractions
from recordgen.core.planning.decide import decide
from recordgen.core.rows.row import placing
from recordgen.errors import DataError, UsageError
from recordgen.options import ConvertOptions
from recordgen.tasks import task_for
from tests.conftest import encoded, noise, write_file
from tests.core.planning.test_eval_from import split_of_each
from tests.planned import alike, bucket_of
from tests.settings import split_settings

BUCKETS = 3


def facts_of_rows(rows, buckets=BUCKETS, seed=0):
    """Return the facts of rows by bucket."""
    place = placing(seed)
    found = {number: [] for number in range(buckets)}
    for row in rows:
        found[bucket_of(place(row[0]).sort_key, buckets)].append(row)
    return {
        bucket: pa.table(
            {
                "split": pa.array([split for *_, split in some], pa.string()),
                "split_hash": pa.array([place(name).split_hash for name, *_ in some], pa.uint64()),
                "label": pa.array([label for _, label, _ in some], pa.string()).dictionary_encode(),
            }
        )
        for bucket, some in found.items()
    }


def splits_of(rows, buckets=BUCKETS, **options):
    """Return the split of each row by its name, with ``stratify=label``."""
    chosen = split_settings(stratify="label", **options)
    place = placing(chosen.seed)
    names = {number: [] for number in range(buckets)}
    for name, *_ in rows:
        names[bucket_of(place(name).sort_key, buckets)].append(name)
    return {
        name: split
        for bucket, found in decide(facts_of_rows(rows, buckets, chosen.seed), chosen, alike)
        for name, split in zip(names[bucket], found["split"].to_pylist(), strict=True)
    }


def unnamed(counts, start=0):
    """Return rows that name no split, with the given number of each label."""
    return [
        (f"{label}{n}", label, None) for label, count in counts.items() for n in range(start, count)
    ]


def counted(rows, splits):
    """Return the number of rows of each label in each split."""
    found = {}
    for name, label, _ in rows:
        found.setdefault(label, Counter())[splits[name]] += 1
    return found


WEIGHTS = st.lists(st.integers(0, 100), min_size=1, max_size=3).filter(any)
COUNTS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 60), min_size=1)


@given(COUNTS, WEIGHTS)
def test_each_class_has_its_shares(counts, weights):
    """Each split has its share of a class to within one example."""
    rows = unnamed(counts)
    fractions = SplitFractions(SPLITS[: len(weights)], tuple(weights))
    found = counted(rows, splits_of(rows, split=fractions))
    for label, count in counts.items():
        assert found[label].total() == count
        for split, weight in zip(fractions.names, weights, strict=True):
            due = count * weight / sum(weights)
            assert abs(found[label][split] - due) < 1
            assert weight or not found[label][split]


def test_small_classes_do_not_all_round_alike():
    """Rests go to different splits."""
    rows = unnamed({f"label{n}": 3 for n in range(400)})
    found = Counter(splits_of(rows).values())
    assert 80 <= found["eval"] <= 160
    assert 80 <= found["test"] <= 160
    only_train = SplitFractions(("train",), (1,))
    moved = Counter(splits_of(rows, split=only_train, eval_from="train:10").values())
    assert 80 <= moved["eval"] <= 160


@given(COUNTS, st.integers(1, 4))
def test_neither_buckets_nor_the_order_of_rows_decide(counts, buckets):
    """Rows alone decide."""
    rows = unnamed(counts)
    assert splits_of(rows[::-1], buckets) == splits_of(rows)


@given(COUNTS, st.sampled_from("abcd"))
def test_a_row_that_is_added_moves_few(counts, label):
    """At most two rows of its own class move."""
    rows = unnamed(counts)
    before = splits_of(rows)
    after = splits_of([*rows, ("new", label, None)])
    moved = [name for name in before if before[name] != after[name]]
    assert all(name.startswith(label) for name in moved)
    assert len(moved) <= 2


def test_named_splits_stay():
    """They do not affect the shares of other rows."""
    named = [(f"named{n}", "a", "test") for n in range(30)]
    rows = unnamed({"a": 40})
    found = splits_of([*rows, *named])
    assert found == {**splits_of(rows), **{name: "test" for name, *_ in named}}


def test_the_seed_decides_which_rows():
    """Shares stay, rows change."""
    rows = unnamed({"a": 100, "b": 50})
    one, other = splits_of(rows, seed=1), splits_of(rows, seed=2)
    due = Counter(train=80, eval=10, test=10)
    assert counted(rows, one)["a"] == counted(rows, other)["a"] == due
    assert one != other
    small = unnamed({f"label{n}": 3 for n in range(20)})  # it also decides which classes have eval
    assert counted(small, splits_of(small, seed=1)) != counted(small, splits_of(small, seed=2))


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=40))
def test_rows_of_one_name_stay_together(labels):
    """Rows of one name have one split."""
    rows = [(f"name{n % 5}", label, None) for n, label in enumerate(labels)]
    place = placing(0)
    together = {}
    for bucket, found in decide(facts_of_rows(rows), split_settings(stratify="label"), alike):
        names = [row[0] for row in rows if bucket_of(place(row[0]).sort_key, BUCKETS) == bucket]
        for name, split in zip(names, found["split"].to_pylist(), strict=True):
            together.setdefault(name, set()).add(split)
    assert all(len(splits) == 1 for splits in together.values())


def test_eval_from_takes_its_share_of_each_class():
    """A larger share contains the smaller one."""
    rows = [(name, label, "train") for name, label, _ in unnamed({"a": 200, "b": 30})]
    chosen = {"split": SplitFractions(("train",), (1,))}
    small = splits_of(rows, eval_from="train:10", **chosen)
    shares = counted(rows, small)
    assert shares == {"a": Counter(train=180, eval=20), "b": Counter(train=27, eval=3)}
    large = splits_of(rows, eval_from="train:30", **chosen)
    assert {n for n in small if small[n] == "eval"} < {n for n in large if large[n] == "eval"}
    bare = [(name, label, None) for name, label, _ in rows]
    assert splits_of(bare, eval_from="train:10", **chosen) == small
    options = split_settings(stratify="label", eval_from="train:10")
    [(_, decided)] = decide(facts_of_rows(rows, 1), options, alike)
    assert decided["moved"] == decided["assigned"]
    assert sum(decided["moved"].to_pylist()) == 23


# --- copies -----------------------------------------------------------------------------------


def facts_of_copies(rows):
    """Return the facts of one bucket's rows."""
    sources, lines, splits, labels, contents, payloads = zip(*rows, strict=True)
    digests = [text and text.encode().ljust(16) for text in contents]
    return pa.table(
        {
            "split": pa.array(splits, pa.string()),
            "split_hash": pa.array([0] * len(rows), pa.uint64()),
            "source": pa.array(sources, pa.string()).dictionary_encode(),
            "line": pa.array(lines, pa.int64()),
            "uri": pa.array([*map(str, lines)], pa.string()),
            "has_label": pa.array(labels, pa.bool_()),
            "content": pa.array(digests, pa.binary()),
            "payload": pa.array(payloads, pa.uint64()),
        }
    )


# rows: source and line, content (``-`` was not read) and file, and a split or ``bare``, which is
# without a label; the lines that are kept
COPIES = {
    "the first by import file and line": ("b1 x1, a3 x2, a2 x3", [2]),
    "one that names a split": ("a1 x1, a2 x2 test bare", [2]),
    "one that has a label": ("a1 x1 bare, a2 x2", [2]),
    "all rows of one file": ("a1 x7, a2 x7, a3 x8", [1, 2]),
    "other bytes, and what was not read": ("a1 x1, a2 y2, a3 -3, a4 -4", [1, 2, 3, 4]),
    "nothing that was read": ("a1 -1", [1]),
}


def copies_of(text):
    """Return rows, see ``COPIES``."""
    rows = []
    for place, payload, *more in map(str.split, text.split(", ")):
        split = "test" if "test" in more else None
        content = payload[0].replace("-", "") or None
        rows.append(
            (place[0], int(place[1:]), split, "bare" not in more, content, int(payload[1:]))
        )
    return rows


@pytest.mark.parametrize(("rows", "kept"), COPIES.values(), ids=COPIES)
def test_one_of_several_equal_files_is_kept(rows, kept):
    """In any order of buckets."""
    rows, options = copies_of(rows), split_settings(duplicates="drop")
    for buckets in ({0: rows}, {4: rows[1:], 2: rows[:1]}):
        facts = {bucket: facts_of_copies(some) for bucket, some in buckets.items() if some}
        found = [
            facts[bucket].filter(decided["kept"])["line"].to_pylist()
            for bucket, decided in decide(facts, options, alike)
        ]
        assert sorted(line for some in found for line in some) == kept


def test_the_first_five_copies_are_named():
    """The error counts the others."""
    options = split_settings(duplicates="fail")
    rows = [("a.csv", line, None, True, "x", line) for line in range(1, 8)]
    assert len(list(decide({0: facts_of_copies(rows[:1])}, options, alike))) == 1
    with pytest.raises(DataError, match=r"duplicates=fail: 6 .*duplicates=drop") as caught:
        list(decide({0: facts_of_copies(rows)}, options, alike))
    _, *copies, more = str(caught.value).splitlines()
    assert [re.findall(r"a\.csv:(\d)", line) for line in copies] == [
        [f"{n}", "1"] for n in range(2, 7)
    ]
    assert " 1 " in more


# --- whole runs -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Return the folder of an import file: 40 photos in two classes, ten of them twice."""
    folder = tmp_path_factory.mktemp("photos")
    lines = []
    for number in range(50):
        (folder / f"{number}.png").write_bytes(encoded(noise(seed=number % 40), "PNG"))
        lines.append(f"{number}.png,{'dog' if number % 40 < 10 else 'cat'}\n")
    (folder / "labels.csv").write_text("".join(lines))
    return folder


def test_copies_count_as_duplicates(photos, tmp_path):
    """convert, plan, check and resume agree."""
    source = str(photos / "labels.csv")
    given = {"duplicates": "drop", "stratify": "label", "eval_from": "train:25"}
    given["split"] = "80,0,20"
    result = recordgen.convert(source, tmp_path / "out", **given)
    assert result.dataset.rows.duplicates == 10
    assert {name: dict(split.labels) for name, split in result.dataset.splits.items()} == {
        "train": {"cat": 18, "dog": 6},
        "eval": {"cat": 6, "dog": 2},
        "test": {"cat": 6, "dog": 2},
    }
    found = split_of_each(tmp_path / "out", "image/source_id")
    assert found.keys() == {f"{n}.png" for n in range(40)}
    planned = recordgen.plan(source, **given)
    rows = {name: split["rows"] for name, split in planned.splits.items()}
    assert rows == {"train": 24, "eval": 8, "test": 8}
    assert recordgen.convert(source, tmp_path / "out", resume=True, **given).unchanged
    with pytest.raises(DataError, match=r"(?s)10 rows .*labels.csv:41 .*csv:1\n"):
        recordgen.check(source, duplicates="fail")


def test_a_payload_that_cannot_be_read_is_no_copy(photos, make_csv):
    """It is a reject."""
    # Files of rows that name their split are compared, too.
    names = ["TRAIN,{}/1.png,a", "TRAIN,{}/none.png,a", "TEST,{}/41.png,a"]
    source = make_csv(name.format(photos) for name in names)
    result = recordgen.plan(source, duplicates="drop", max_reject_fraction=1)
    assert [(item.line, item.code) for item in result.rejects] == [(2, "missing_file")]
    assert (result.rows, result.duplicates) == (1, 1)


def test_one_file_by_two_names_and_two_files_of_one_name(photos, tmp_path):
    """Bytes decide, not names."""
    lines = ["1.png,cat", f"{photos}/1.png,cat"]
    (photos / "names.csv").write_text("".join(f"{line}\n" for line in lines))
    result = recordgen.plan(str(photos / "names.csv"), duplicates="drop")
    assert (result.rows, result.duplicates) == (1, 1)
    sources = [write_file(tmp_path / folder / "labels.csv", "1.png,cat\n") for folder in "ab"]
    for source in sources:
        write_file(source.with_name("1.png"), (photos / "1.png").read_bytes())
    result = recordgen.plan(list(map(str, sources)), duplicates="drop")
    assert (result.rows, result.duplicates) == (1, 1)


def test_values_of_the_target_are_classes(make_csv):
    """Shares of a table's classes ignore blanks around them."""
    lines = [f"{n},{'no' if n % 10 else 'yes' + ' ' * (n // 10)}" for n in range(200)]
    source = make_csv(["n,y", *lines])
    given = {"task": "tabular", "columns": "target=y", "stratify": "label"}
    found = recordgen.plan(source, **given).splits
    rows = {name: split["rows"] for name, split in found.items()}
    assert rows == {"train": 160, "eval": 20, "test": 20}
    with pytest.raises(UsageError, match="stratify=label"):
        recordgen.plan(source, **{**given, "columns": "target:number=n"})
    with pytest.raises(UsageError, match=r"duplicates=drop .* tabular"):
        recordgen.plan(source, **{**given, "duplicates": "drop"})


SEVERAL = ["image_multi_label", "object_detection", "text_entities", "video_classification"]


@pytest.mark.parametrize(
    ("task", "more"), [*((task, {}) for task in SEVERAL), ("declared", {"schema": '{"n": "int"}'})]
)
def test_stratify_needs_one_label_per_example(task, more):
    """Tasks with several labels refuse it."""
    with pytest.raises(UsageError, match="stratify=label"):
        task_for(ConvertOptions(task=task, stratify="label", **more))


def test_groups_and_copies_exclude_shares_by_label():
    """The error names both options."""
    copies = "duplicates=drop.*group_by="
    for by, words in (("patient", "group_by"), ("content", copies), ("near", f"{copies}near")):
        with pytest.raises(UsageError, match=rf"stratify.*{words}"):
            ConvertOptions(stratify="label", group_by=by)
