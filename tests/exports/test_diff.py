"""`recordgen diff`: changes, moves and leaks between two datasets, as text and JSON."""

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import recordgen
from recordgen import storage
from recordgen.cli import main
from recordgen.core.dataset.counts import Split
from recordgen.core.dataset.manifest import DATASET_FILE, EXAMPLES_FILE
from recordgen.core.facts.columns import of_shard, to_parquet, whole
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.errors import SourceError, UsageError
from recordgen.version import __version__
from tests.conftest import convert_lines, encoded, noise, write_noise
from tests.datasets import dataset_of


class Example(NamedTuple):
    """A row: its split, the uri, annotation and source of the bytes of its payload."""

    split: str
    uri: str
    annotation: str | None
    payload: str


def write_dataset(root, rows, task="image_classification"):
    """Write ``dataset.json`` and ``examples.parquet`` of rows that no conversion wrote."""
    split, uri, annotation, payload = zip(*rows, strict=True)
    digests = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in payload)
    table = pa.table(
        {
            "split": split,
            "source": pa.array(["rows.csv"] * len(uri)).dictionary_encode(),
            "line": pa.array(range(1, len(uri) + 1), pa.int64()),
            "uri": uri,
            "annotation": pa.array(annotation, pa.string()),
            "content": pa.array([int.from_bytes(d, "big") for d in digests], pa.uint64()),
        }
    )
    examples = Counter(split)
    parts = [
        part
        for name in examples
        for mine in [whole(table.filter(pa.compute.equal(table["split"], name)).drop(["split"]))]
        for part in of_shard(name, f"Split-{name}/data_tfrecord-00000-of-00001", [mine])
    ]
    labels = tuple(sorted(filter(None, {*annotation})))
    dataset = dataset_of(
        task=task,
        recordgen_version=__version__,
        labels=labels if task == "image_classification" else (),
        splits={name: Split(count, 0, {}, ()) for name, count in examples.items()},
    )
    root.mkdir(parents=True)
    (root / EXAMPLES_FILE).write_bytes(b"".join(to_parquet(parts)))
    (root / DATASET_FILE).write_text(json.dumps(dataset.to_json()))


def converted(folder, name, lines, **options):
    """Convert lines of a CSV, and return the output."""
    return str(convert_lines(folder, lines, name, source=f"{name}.csv", **options))


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Two versions of ten images: each kind of change happens to one of the first version."""
    folder = tmp_path_factory.mktemp("images")
    write_noise(folder, range(10))
    splits = ["TRAIN"] * 6 + ["VALIDATION"] * 2 + ["TEST"] * 2
    labels = ["cat", "dog"] * 5
    rows = {f"{n}.png": row for n, row in enumerate(zip(splits, labels, strict=True))}
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
def run(capsys):
    """Return a function that runs the command: exit code, stdout, stderr."""

    def run(*args):
        capsys.readouterr()
        return main(["diff", *map(str, args)]), *capsys.readouterr()

    return run


def compared(folder, task, old, new):
    """Compare rows that no conversion wrote."""
    for name, rows in (("old", old), ("new", new)):
        write_dataset(folder / name, rows, task)
    return recordgen.diff(folder / "old", folder / "new")


def kinds(found):
    return Counter(item.kinds for item in found.changed)


# --- differences ------------------------------------------------------------------------------


def test_rows_say_where_they_are(images, found):
    """A row names its record and the line of its import file."""
    for row in found.added:
        record = list(RECORDS.read(storage.join(images[1], row.file)))[row.record]
        assert parse_example(record)["image/source_id"] == [row.uri.encode()]
        assert row.uri in Path(row.source).read_text().splitlines()[row.line - 1]


def test_vocabulary_and_options(found):
    """Labels whose number changed are listed, and so are options that differ."""
    assert found.vocabulary.added == ("bee",)
    assert found.vocabulary.removed == ()
    assert found.vocabulary.renumbered == {"cat": (0, 1), "dog": (1, 2)}
    options = {item.name: (item.old, item.new) for item in found.options}
    assert options["seed"] == (0, 3)
    assert options["compression"] == ("none", "gzip")
    assert "labels" not in options


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


TEXTS = {"task": "text_classification"}
TABLE = {"columns": "target=target"}
PRICES = {"task": "tabular", "columns": "target=price"}
PHOTOS = {"schema": {"split": "split", "photo": "image", "age": "int", "breed": "label"}}
NAMES = {"schema": {"split": "split", "source_id": "text", "age": "int", "breed": "label"}}
HEAD = "split,age,job,source_id,target"
NUMBERS = [f"{number},{number}.{number}5" for number in range(30)]

BOX = ".1,.2,,,.5,.6,,"
MORE_BOXES = {1: "TRAIN,1.png,cat,.1,.2,,,.5,.7,,", 2: f"TRAIN,2.png,dog,{BOX}"}
MORE_BOXES[3] = f"TRAIN,3.png,cat,{BOX}\nTRAIN,3.png,cat,.3,.3,,,.4,.4,,"

# name: options, lines of OLD, lines of NEW that are others by place; kinds of the changed rows;
# numbers of added, removed and unchanged rows; leaks from OLD's train
CONVERTED = {
    "boxes that moved, have another label, or are more": (
        *({}, [f"TRAIN,{n}.png,cat,{BOX}" for n in range(4)], MORE_BOXES),
        *([("annotation",), ("label", "annotation"), ("annotation",)], (0, 0, 1), 0),
    ),
    "texts, matched by content, or by the name of their file": (
        *(
            TEXTS,
            ["TRAIN,one text here,good", "TRAIN,a text,bad", "TRAIN,a.txt,good", "TEST,b,bad"],
        ),
        *({1: "TEST,a text,good", 3: "TEST,new text,bad"}, [("label", "split"), ("bytes",)]),
        *((1, 1, 1), 1),
    ),
    "rows of a table, matched by all columns but the target, equal ones one to one": (
        TABLE,
        [HEAD, "TRAIN,1,cook,a,yes", *["TRAIN,2,cook,b,no"] * 2, "TRAIN,3,baker,c,no"],
        {1: "TRAIN,1,cook,a,no", 3: "TEST,2,cook,b,no", 4: "TRAIN,30,baker,c,no"},
        *([("label",), ("split",)], (1, 1, 1), 1),
    ),
    "a target of numbers": (
        *(PRICES, ["age,price", *NUMBERS], {8: "7,8.5"}, [("label",)], (0, 0, 29), 0),
    ),
    "columns beside an image are features": (
        *(PHOTOS, ["TRAIN,0.png,3,cat", "TRAIN,1.png,4,dog"]),
        *({0: "TRAIN,0.png,4,cat", 1: "TRAIN,1.png,4,cat"}, [("features",), ("label",)]),
        *((0, 0, 0), 0),
    ),
    "declared columns without an image, which are matched by": (
        *(NAMES, ["TRAIN,a,1,cat", "TRAIN,b,2,dog", "TRAIN,c,3,dog"]),
        *({1: "TRAIN,b,2,cat", 2: "TRAIN,c,4,bee"}, [("label",)], (1, 1, 1), 0),
    ),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_rows_of_other_tasks(name, tmp_path):
    """Each kind of row is matched by what identifies it, and differs in what else it says."""
    options, lines, others, changed, counts, leaks = CONVERTED[name]
    write_noise(tmp_path, range(4))
    (tmp_path / "a.txt").write_text("a text in a file")
    old = converted(tmp_path, "old", lines, **options)
    (tmp_path / "a.txt").write_text("a text that changed")
    lines = [others.get(at, line) for at, line in enumerate(lines)]
    found = recordgen.diff(old, converted(tmp_path, "new", lines, **options))
    assert kinds(found) == Counter(changed)
    assert (len(found.added), len(found.removed), found.unchanged) == counts
    assert found.leak_counts["train_to_evaluation"] == leaks


SPLITS = st.sampled_from(("train", "eval", "test"))
ROW = st.tuples(SPLITS, st.sampled_from(("cat", "dog", None)), st.sampled_from("xyz"))
ROWS = st.dictionaries(st.sampled_from("abcdefgh"), ROW, min_size=1)


@settings(deadline=None, max_examples=25)
@given(old=ROWS, new=ROWS)
def test_it_is_the_join_that_pandas_makes(old, new, tmp_path_factory):
    """Rows, changes, moves and leaks agree with merges of two DataFrames."""
    sides = [[Example(s, uri, a, p) for uri, (s, a, p) in side.items()] for side in (old, new)]
    found = compared(tmp_path_factory.mktemp("pandas"), "image_classification", *sides)
    before, after = (pd.DataFrame(side).fillna("") for side in sides)
    rows = before.merge(after, on="uri", how="outer", suffixes=("", "_new"), indicator=True)
    both = rows[rows["_merge"] == "both"]
    columns = ("annotation", "payload", "split")
    differs = {name: both[name] != both[f"{name}_new"] for name in columns}
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
    for facts in (
        ["OLD", images[0], "10 examples", "image_classification"],
        ["Changed", "3", "label 1", "bytes 1", "split 1"],
        ["Moved", "1", "(eval → test 1)"],
        ["Vocabulary", "1", "bee", "2", "cat: 0 → 1", "dog: 1 → 2"],
        *(["copy.png", "0.png"], ["1.png", "dog → bee"], ["7.png", "eval → test"]),
    ):
        assert any(all(fact in line for fact in facts) for line in out.splitlines()), facts
    assert ["test", "2", "4", "+2"] in [line.split() for line in out.splitlines()]


def test_long_lists_are_cut(tmp_path, run):
    """Text has ten rows of a kind and their number; JSON has all."""
    rows = [Example("eval", f"{n}", "x", f"{n}") for n in range(13)]
    compared(tmp_path, "image_classification", rows[:1], rows)
    _, out, _ = run(tmp_path / "old", tmp_path / "new")
    assert " 2 more" in out
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
    [removed], [row] = data["removed"], found.removed
    names = ("uri", "split", "file", "record", "source", "line")
    assert removed == {"labels": ["cat"], **{name: getattr(row, name) for name in names}}
    assert sorted(item["kinds"] for item in data["changed"]) == [["bytes"], ["label"], ["split"]]
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
        write_dataset(tmp_path / name, rows)
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
        (clean, cleaner, "--fail-on", "changes,leaks"): 1,
    }
    assert {args: run(*args)[0] for args in expected} == expected


def test_numbers_of_labels_are_a_change(tmp_path, run):
    """Equal rows with other label numbers differ: a model would confuse the labels."""
    write_noise(tmp_path, "ab")
    lines = ["TRAIN,b.png,dog", "TRAIN,a.png,cat"]
    old = converted(tmp_path, "old", lines)
    appended = converted(tmp_path, "new", lines[:1])
    recordgen.convert(str(tmp_path / "old.csv"), appended, append=True)
    code, out, _ = run(old, appended)
    assert code == 1
    assert "Changed    0" in out
    assert "2 renumbered (cat: 0 → 1, dog: 1 → 0)" in out
