"""`recordgen diff`: changes, moves and leaks between two datasets, as text and JSON."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import recordgen
from benchmarks.diff import Example, write_dataset
from recordgen import storage
from recordgen.cli import main
from recordgen.conversion.texts.differences import difference_summary
from recordgen.core.dataset.counts import Split
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.errors import SourceError, UsageError
from recordgen.exports.diff.differences import LabelDrift
from tests.conftest import encoded, noise

Run = Callable[..., tuple[int, str, str]]


def converted(folder, name, lines, **options):
    """Convert lines of a CSV, and return the output."""
    source = folder / f"{name}.csv"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    recordgen.convert(str(source), folder / name, **options)
    return str(folder / name)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Two versions of ten images: each kind of change happens to one of the first version."""
    folder = tmp_path_factory.mktemp("images")
    for number in range(10):
        (folder / f"{number}.png").write_bytes(encoded(noise(seed=number), "PNG"))
    splits = ["TRAIN"] * 6 + ["VALIDATION"] * 2 + ["TEST"] * 2
    labels = ["cat", "dog"] * 5
    rows = {
        f"{n}.png": (split, label)
        for n, (split, label) in enumerate(zip(splits, labels, strict=True))
    }
    old = converted(folder, "old", [f"{s},{uri},{label}" for uri, (s, label) in rows.items()])
    shutil.copy(folder / "0.png", folder / "copy.png")  # leaks: 0.png was in train
    shutil.copy(folder / "9.png", folder / "9 again.png")  # the opposite
    (folder / "3.png").write_bytes(encoded(noise(32, 24, seed=33), "PNG"))
    del rows["0.png"]
    rows |= {
        "1.png": ("TRAIN", "bee"),
        "7.png": ("TEST", "dog"),
        "copy.png": ("TEST", "cat"),
        "9 again.png": ("TRAIN", "dog"),
    }
    lines = [f"{s},{uri},{label}" for uri, (s, label) in rows.items()]
    return old, converted(folder, "new", lines, seed=3, compression="gzip")


@pytest.fixture(scope="module")
def found(images):
    return recordgen.diff(*images)


@pytest.fixture
def run(capsys, as_loud_as_before):
    """Return a function that runs the command: exit code, stdout, stderr."""

    def run(*args):
        capsys.readouterr()
        code = main(["diff", *map(str, args)])
        return code, *capsys.readouterr()

    return run


def compared(folder, task, old, new):
    """Compare rows that no conversion wrote."""
    for name, rows in (("old", old), ("new", new)):
        write_dataset(folder / name, iter(rows), task)
    return recordgen.diff(folder / "old", folder / "new")


def segment(start, label, split="train"):
    return Example(split, "a.mp4", json.dumps([label, start, start + 1]), "a.mp4")


def kinds(found):
    return Counter(item.kinds for item in found.changed)


# --- differences ------------------------------------------------------------------------------


def test_rows_of_images(found):
    """Rows are matched by uri; label, bytes and split are separate; gzip does not matter."""
    assert {row.uri: (row.split, row.labels) for row in found.added} == {
        "copy.png": ("test", ("cat",)),
        "9 again.png": ("train", ("dog",)),
    }
    assert [row.uri for row in found.removed] == ["0.png"]
    changed = {item.new.uri: item for item in found.changed}
    assert {uri: item.kinds for uri, item in changed.items()} == {
        "1.png": ("label",),
        "3.png": ("bytes",),
        "7.png": ("split",),
    }
    assert (changed["1.png"].old.labels, changed["1.png"].new.labels) == (("dog",), ("bee",))
    assert (changed["7.png"].old.split, changed["7.png"].new.split) == ("eval", "test")
    assert found.kinds == {"label": 1, "annotation": 0, "bytes": 1, "features": 0, "split": 1}
    assert found.moves == (("eval", "test", 1),)
    assert found.old.examples == found.unchanged + len(found.changed) + len(found.removed)
    assert found.new.examples == found.unchanged + len(found.changed) + len(found.added)


def test_rows_say_where_they_are(images, found):
    """A row names its record and the line of its import file."""
    for row in found.added:
        record = list(RECORDS.read(storage.join(images[1], row.file)))[row.record]
        assert parse_example(record)["image/source_id"] == [row.uri.encode()]
        assert row.uri in Path(row.source).read_text().splitlines()[row.line - 1]


def test_leaks_in_both_directions(found):
    """A payload of OLD's train in NEW's test is a leak under any name, and vice versa."""
    leaks = {(item.direction, item.old.uri, item.new.uri) for item in found.leaks}
    assert leaks == {
        ("train_to_evaluation", "0.png", "copy.png"),
        ("evaluation_to_train", "9.png", "9 again.png"),
    }
    assert found.leak_counts == {"train_to_evaluation": 1, "evaluation_to_train": 1}


def test_vocabulary_and_options(found):
    """Labels whose number changed are listed, and so are options that differ."""
    assert found.vocabulary is not None
    assert found.vocabulary.added == ("bee",)
    assert found.vocabulary.removed == ()
    assert found.vocabulary.renumbered == {"cat": (0, 1), "dog": (1, 2)}
    options = {item.name: (item.old, item.new) for item in found.options}
    assert options["seed"] == (0, 3)
    assert options["compression"] == ("none", "gzip")
    assert "labels" not in options


def test_each_split_has_the_distance_of_its_label_shares(found):
    labels = {item.split: item for item in found.labels}
    assert list(labels) == ["all", "train", "eval", "test"]
    assert labels["train"].counts == {"bee": (0, 1), "cat": (3, 2), "dog": (3, 3)}
    assert labels["train"].distance == pytest.approx((1 / 6 + 1 / 6) / 2)
    assert labels["eval"].distance == pytest.approx(0.5)  # the dog went to test


@pytest.mark.parametrize(
    ("old", "new", "distance"),
    [
        ({"a": 1, "b": 1}, {"a": 7, "b": 7}, 0),
        ({"a": 3}, {"b": 1}, 1),
        ({"cat": 1, "dog": 1}, {"cat": 3, "dog": 1}, 0.25),
        ({}, {"a": 1}, None),
    ],
)
def test_distances(old, new, distance):
    """Equal shares have distance 0, disjoint labels 1; without counts there is no distance."""
    sides = ({"train": Split(0, 0, labels, ())} for labels in (old, new))
    [item] = LabelDrift.between(*sides)
    assert item.distance == (None if distance is None else pytest.approx(distance))


def test_boxes(tmp_path):
    """Moved, added and removed boxes change the annotation; another label also the label."""
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(encoded(noise(seed=number), "PNG"))
    lines = [f"TRAIN,{number}.png,cat,.1,.2,,,.5,.6,," for number in range(4)]
    old = converted(tmp_path, "old", lines)
    lines[1] = "TRAIN,1.png,cat,.1,.2,,,.5,.7,,"
    lines[2] = "TRAIN,2.png,dog,.1,.2,,,.5,.6,,"
    lines.append("TRAIN,3.png,cat,.3,.3,,,.4,.4,,")
    found = recordgen.diff(old, converted(tmp_path, "new", lines[::-1]))
    changed = {item.new.uri: item for item in found.changed}
    assert {uri: item.kinds for uri, item in changed.items()} == {
        "1.png": ("annotation",),
        "2.png": ("label", "annotation"),
        "3.png": ("annotation",),
    }
    assert (changed["3.png"].old.objects, changed["3.png"].new.objects) == (1, 2)
    text = difference_summary(found)
    assert "label 1, boxes 3" in text
    assert "3.png: boxes 1 → 2" in text
    assert "  1.png: boxes" in text.splitlines()


def test_entities(tmp_path):
    """A moved entity changes the annotation, an entity with another label also the label."""

    def row(text, *spans):
        keys = "startOffset", "endOffset", "displayName"
        found = [dict(zip(keys, span, strict=True)) for span in spans]
        return json.dumps({"textContent": text, "textSegmentAnnotations": found})

    for name, rows in {
        "old": [row("Anna in Rome", (0, 4, "person")), row("Ben in Oslo", (0, 3, "person"))],
        "new": [row("Anna in Rome", (8, 12, "person")), row("Ben in Oslo", (0, 3, "man"))],
    }.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
        recordgen.convert(str(tmp_path / f"{name}.jsonl"), tmp_path / name)
    found = recordgen.diff(tmp_path / "old", tmp_path / "new")
    assert kinds(found) == Counter([("annotation",), ("label", "annotation")])
    assert {item.new.objects for item in found.changed} == {1}


def test_texts(tmp_path):
    """Texts in rows are matched by content, texts in files by the file's name."""
    (tmp_path / "a.txt").write_text("a text in a file")
    lines = ["TRAIN,one text here,good", "TRAIN,another text here,bad", "TRAIN,a.txt,good"]
    options = {"task": "text_classification"}
    old = converted(tmp_path, "old", [*lines, "TEST,the last text,bad"], **options)
    (tmp_path / "a.txt").write_text("a text that changed")
    lines[1] = "TEST,another text here,good"
    new = converted(tmp_path, "new", [*lines, "TEST,new text,bad"], **options)
    found = recordgen.diff(old, new)
    assert kinds(found) == Counter([("label", "split"), ("bytes",)])
    assert (len(found.added), len(found.removed), found.unchanged) == (1, 1, 1)
    assert found.leak_counts == {"train_to_evaluation": 1, "evaluation_to_train": 0}
    text = difference_summary(found)
    assert f"{tmp_path}/new.csv:2: label bad → good, split train → test" in text
    assert f"{tmp_path}/new.csv:4 (test, bad)" in text


def test_tables(tmp_path):
    """Rows of a table are matched by all columns except the target; equal rows one to one."""
    head = "split,age,job,source_id,target"
    rows = ["TRAIN,1,cook,a,yes", "TRAIN,2,cook,b,no", "TRAIN,2,cook,b,no", "TRAIN,3,baker,c,no"]
    old = converted(tmp_path, "old", [head, *rows, "TEST,4,smith,d,yes"], columns="target=target")
    rows[0] = "TRAIN,1,cook,a,no"  # another target
    rows[2] = "TEST,2,cook,b,no"  # one of two that are equal moves
    rows[3] = "TRAIN,30,baker,c,no"  # another row
    new = converted(tmp_path, "new", [head, *rows, "TEST,4,smith,d,yes"], columns="target=target")
    found = recordgen.diff(old, new)
    assert kinds(found) == Counter([("label",), ("split",)])
    assert (len(found.added), len(found.removed), found.unchanged) == (1, 1, 2)
    assert [item.new.labels for item in found.changed if item.kinds == ("label",)] == [("no",)]
    assert found.leak_counts["train_to_evaluation"] == 1
    assert (found.added[0].uri, found.added[0].line) == ("", 5)


def test_number_targets_have_no_shares(tmp_path):
    """A numeric target is compared row by row, and has no shares; equal inputs do not conflict."""
    head = "age,price"
    rows = [f"{number},{number}.{number}5" for number in range(30)]
    rows += ["0,0.5"]
    options = {"task": "tabular", "columns": "target=price"}
    old = converted(tmp_path, "old", [head, *rows], **options)
    rows[7] = "7,8.5"
    new = converted(tmp_path, "new", [head, *rows], **options)
    found = recordgen.diff(old, new)
    assert found.labels == ()
    [item] = found.changed
    assert (item.kinds, item.old.labels, item.new.labels) == (("label",), ("7.75",), ("8.5",))
    assert "CONFLICT" not in recordgen.read_dataset(new).lint


def test_declared_columns(tmp_path):
    """In a table with an image, other columns are features; the label may have any name."""
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes(encoded(noise(seed=number), "PNG"))
    schema = {"split": "split", "photo": "image", "age": "int", "breed": "label"}
    old = converted(tmp_path, "old", ["TRAIN,0.png,3,cat", "TRAIN,1.png,4,dog"], schema=schema)
    new = converted(tmp_path, "new", ["TRAIN,0.png,4,cat", "TRAIN,1.png,4,cat"], schema=schema)
    found = recordgen.diff(old, new)
    assert kinds(found) == Counter([("features",), ("label",)])
    assert {item.new.objects for item in found.changed} == {0}


def test_declared_columns_without_images(tmp_path):
    """Without an image a row is matched by its columns, with any names and label numbers."""
    schema = {"split": "split", "source_id": "text", "age": "int", "breed": "label"}
    rows = ["TRAIN,a,1,cat", "TRAIN,b,2,dog", "TRAIN,c,3,dog"]
    old = converted(tmp_path, "old", rows, schema=schema)
    rows[1:] = ["TRAIN,b,2,cat", "TRAIN,c,4,bee"]  # bee takes number 0
    found = recordgen.diff(old, converted(tmp_path, "new", rows, schema=schema))
    assert kinds(found) == Counter([("label",)])
    assert (len(found.added), len(found.removed), found.unchanged) == (1, 1, 1)


def test_segments_of_one_video(tmp_path):
    """Among rows of one uri, only changed rows count as changed; a video leaks as a whole."""
    clips = [segment(start, "run") for start in range(5)]
    moved = [clips[0], segment(1, "jump"), segment(2.5, "run"), clips[3], segment(4, "run", "test")]
    found = compared(tmp_path, "video_classification", clips, moved)
    assert kinds(found) == Counter([("label",), ("annotation",), ("split",)])
    assert (found.unchanged, found.added[:], found.removed[:]) == (2, [], [])
    assert {item.new.objects for item in found.changed} == {0}
    assert found.leak_counts == {"train_to_evaluation": 1, "evaluation_to_train": 0}
    assert "segment 1" in difference_summary(found)


def test_segments_with_other_labels(tmp_path):
    """Among rows of one uri, rows that differ only in the label are matched first."""
    old = [segment(0.0, "run"), segment(1.0, "run")]
    new = [segment(1.0, "jump"), segment(0.0, "sit")]
    assert kinds(compared(tmp_path, "video_classification", old, new)) == Counter([("label",)] * 2)


def test_equal_rows_are_matched_one_to_one(tmp_path):
    """Additional copies of a row count as added, and nothing counts as changed."""
    x, y, z = (Example("train", "a", label, "a text") for label in "xyz")
    found = compared(tmp_path, "image_classification", [x, y], [y, y, x, z])
    labels = sorted(item.labels for item in found.added)
    assert (labels, len(found.changed)) == ([("y",), ("z",)], 0)
    back = recordgen.diff(tmp_path / "new", tmp_path / "old")
    assert (sorted(item.labels for item in back.removed), back.unchanged) == ([("y",), ("z",)], 2)


def test_tasks_that_are_not_installed(tmp_path):
    """An annotation that nobody can read is a label."""
    rows = [Example("train", name, name, name) for name in "ab"]
    found = compared(tmp_path, "poses", rows, [rows[0], rows[1]._replace(annotation=None)])
    [item] = found.changed
    assert (item.kinds, item.old.labels, item.new.labels) == (("label",), ("b",), ())


def test_splits_are_known_by_name(tmp_path):
    """A split that only one dataset has does not move rows of other splits."""
    old = [Example(split, name, "x", name) for split, name in (("train", "a"), ("test", "b"))]
    new = [row._replace(split="extra") if row.split == "train" else row for row in old]
    found = compared(tmp_path, "image_classification", old, new)
    assert (found.moves, found.unchanged) == ((("train", "extra", 1),), 1)


def test_many_blocks_of_rows(tmp_path):
    rows = [Example("train", f"{n:05}", "x", f"{n}") for n in range(20_000)]
    found = compared(tmp_path, "image_classification", rows[:1], rows)
    assert [row.uri for row in found.added] == [row.uri for row in rows[1:]]


ROWS = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.tuples(
        st.sampled_from(("train", "eval", "test")),
        st.sampled_from(("cat", "dog", None)),
        st.sampled_from("xyz"),
    ),
    min_size=1,
)


@settings(deadline=None, max_examples=25)
@given(old=ROWS, new=ROWS)
def test_it_is_the_join_that_pandas_makes(old, new, tmp_path_factory):
    """Rows, changes, moves and leaks agree with merges of two DataFrames."""
    sides = [[Example(s, uri, a, p) for uri, (s, a, p) in side.items()] for side in (old, new)]
    found = compared(tmp_path_factory.mktemp("pandas"), "image_classification", *sides)
    before, after = (pd.DataFrame(side).fillna("") for side in sides)
    rows = before.merge(after, on="uri", how="outer", suffixes=("", "_new"), indicator=True)
    both = rows[rows["_merge"] == "both"]
    differs = {
        name: both[name] != both[f"{name}_new"] for name in ("annotation", "payload", "split")
    }
    assert {row.uri for row in found.added} == {*rows.uri[rows["_merge"] == "right_only"]}
    assert {row.uri for row in found.removed} == {*rows.uri[rows["_merge"] == "left_only"]}
    assert {kind: count for kind, count in found.kinds.items() if count} == {
        kind: int(differs[name].sum())
        for kind, name in (("label", "annotation"), ("bytes", "payload"), ("split", "split"))
        if differs[name].any()
    }
    assert found.unchanged == len(both) - int(pd.DataFrame(differs).any(axis=1).sum())
    moves = both[differs["split"]].groupby(["split", "split_new"]).size()
    assert {move[:2]: move.rows for move in found.moves} == moves.to_dict()
    shared = before.merge(after, on="payload", suffixes=("", "_new"))
    one_side = (shared.split == "train") != (shared.split_new == "train")
    leaked = shared[one_side].groupby("split").uri_new.unique().to_dict()
    train = {*leaked.pop("train", ())}
    assert {item.new.uri for item in found.leaks if item.old.split == "train"} == train
    rest = {uri for uris in leaked.values() for uri in uris}
    assert {item.new.uri for item in found.leaks if item.new.split == "train"} == rest


# --- inputs -------------------------------------------------------------------------------------


def test_dataset_json_and_urls(images, run):
    """A dataset.json means its folder; a URL works like a path; shards are not read."""
    for name in ("dataset.json", "examples.parquet"):
        storage.write_bytes(f"memory://diff/{name}", Path(images[0], name).read_bytes())
    assert run(f"{images[0]}/dataset.json", "memory://diff")[0] == 0


def test_datasets_that_cannot_be_compared(images, tmp_path):
    """The message names the file."""
    recordgen.write([{"x": 1}], tmp_path / "written")
    with pytest.raises(SourceError, match=r"written/examples\.parquet"):
        recordgen.diff(images[0], tmp_path / "written")
    copy = Path(shutil.copytree(images[0], tmp_path / "copy"))
    file = copy / "examples.parquet"
    table = parquet.read_table(file)
    at = table.column_names.index("uri")
    gaps = table.set_column(at, "uri", pa.nulls(len(table), pa.string()))
    for damaged in (table.drop(["content"]), table.slice(1), gaps):
        parquet.write_table(damaged, file)
        with pytest.raises(SourceError, match=r"copy/examples\.parquet"):
            recordgen.diff(copy, images[0])
    file.write_bytes(b"PAR1")
    with pytest.raises(SourceError, match=r"copy/examples\.parquet"):
        recordgen.diff(copy, images[0])
    with pytest.raises(SourceError, match=r"none: .*dataset\.json"):
        recordgen.diff(images[0], tmp_path / "none")
    with pytest.raises(UsageError, match=r"^old .*' '"):
        recordgen.diff(" ", images[0])


# --- the command ---------------------------------------------------------------------------------


def test_text(images, run):
    """Counts come first, then the first rows of each kind with their differences."""
    code, out, err = run(*images)
    assert (code, err) == (1, "")
    for line in (
        f"OLD        {images[0]} (10 examples, image_classification, digest ",
        "Changed    3 (label 1, bytes 1, split 1)",
        "Moved      1 (eval → test 1)",
        "Vocabulary 1 added (bee); 2 renumbered (cat: 0 → 1, dog: 1 → 2)",
        "  copy.png (test) has the content of 0.png (OLD's train)",
        "  1.png: label dog → bee",
        "  7.png: split eval → test",
        "  0.png (train, cat)",
    ):
        assert line in out
    assert ["test", "2", "4", "+2"] in [line.split() for line in out.splitlines()]


def test_long_lists_are_cut(tmp_path, run):
    """Text has ten rows of a kind and their number; JSON has all."""
    rows = [Example("eval", f"{n}", "x", f"{n}") for n in range(13)]
    compared(tmp_path, "image_classification", rows[:1], rows)
    _, out, _ = run(tmp_path / "old", tmp_path / "new")
    assert " 2 more (--json " in out
    assert len(json.loads(run(tmp_path / "old", tmp_path / "new", "--json")[1])["added"]) == 12


def test_json_has_all_rows_and_empty_lists(images, found, run):
    """--json prints everything including all rows; empty lists are present."""
    code, out, err = run(*images, "--json")
    data = json.loads(out)
    assert (code, err) == (1, "")
    assert data["counts"] == {"added": 2, "removed": 1, "changed": 3, "unchanged": 6, "leaks": 2}
    assert data["same"] is False
    assert data["old"]["examples"] == 10
    assert data["moves"] == [{"from": "eval", "to": "test", "rows": 1}]
    [removed] = data["removed"]
    assert removed == {
        "uri": "0.png",
        "split": "train",
        "labels": ["cat"],
        "file": found.removed[0].file,
        "record": found.removed[0].record,
        "source": found.removed[0].source,
        "line": 1,
    }
    assert {tuple(item["kinds"]) for item in data["changed"]} == {
        ("label",),
        ("bytes",),
        ("split",),
    }
    assert {item["direction"] for item in data["leaks"]} == set(found.leak_counts)
    same = json.loads(run(images[0], images[0], "--json")[1])
    assert (same["same"], same["added"], same["leaks"]) == (True, [], [])


def test_the_exit_code_says_whether_datasets_differ_or_leak(images, tmp_path, run):
    """0 if they are the same; 1 if they differ or leak, unless --fail-on allows it."""
    old, new = images
    row = Example("train", "a", "x", "the same")
    for name, rows in {
        "leaking": [row, row._replace(split="test", uri="b")],
        "clean": [row],
        "cleaner": [row, row._replace(uri="c", payload="new")],
    }.items():
        write_dataset(tmp_path / name, iter(rows))
    leaking, clean, cleaner = (str(tmp_path / name) for name in ("leaking", "clean", "cleaner"))
    expected = {
        (old, old): 0,
        (old, new): 1,
        (old, new, "--fail-on", "leaks"): 1,
        (old, new, "--fail-on=none"): 0,
        (leaking, leaking): 1,
        (leaking, leaking, "--fail-on", "changes"): 0,
        (clean, cleaner): 1,
        (clean, cleaner, "--fail-on", "leaks"): 0,
        (clean, cleaner, "--fail-on", "leaks, changes"): 1,
    }
    assert {args: run(*args)[0] for args in expected} == expected


def test_numbers_of_labels_are_a_change(tmp_path, run):
    """Equal rows with other label numbers differ: a model would confuse the labels."""
    (tmp_path / "a.png").write_bytes(encoded(noise(), "PNG"))
    (tmp_path / "b.png").write_bytes(encoded(noise(seed=1), "PNG"))
    lines = ["TRAIN,b.png,dog", "TRAIN,a.png,cat"]
    old = converted(tmp_path, "old", lines)
    appended = converted(tmp_path, "new", lines[:1])
    recordgen.convert(str(tmp_path / "old.csv"), appended, append=True)
    code, out, _ = run(old, appended)
    assert code == 1
    assert "Changed    0" in out
    assert "2 renumbered (cat: 0 → 1, dog: 1 → 0)" in out


WRONG = [
    (["{old}"], 2),
    (["{old}", "{new}", "--fail-on", "leak"], 2),
    (["{old}", "{new}", "--fail-on="], 2),
    (["{old}", "{old}/none"], 1),
    (["{old}", ""], 2),
    (["{old}", "{new}", "--", "--runner=X"], 2),
]


@pytest.mark.parametrize(("args", "code"), WRONG, ids=[" ".join(w[0]) for w in WRONG])
def test_wrong_calls(args, code, images, run, caplog):
    """A wrong call gives an exit code and one message."""
    got, out, _ = run(*(arg.format(old=images[0], new=images[1]) for arg in args))
    assert (got, out, len(caplog.messages)) == (code, "", 1)
