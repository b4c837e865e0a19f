"""`recordgen diff`: changes, moves and leaks between two datasets, as text, JSON and HTML."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import recordgen
from recordgen import Differences, storage
from recordgen.cli import main
from recordgen.comparing.drift import total_variation
from recordgen.comparing.page import to_html
from recordgen.console.differences import difference_summary
from recordgen.errors import RecordError, SourceError, UsageError
from recordgen.records.example import parse_example, serialize_example
from recordgen.records.tfrecord import frame, read_records, write_frames
from tests.conftest import encoded, noise
from tests.report.test_report import HOSTILE, seen, self_contained

pytestmark = pytest.mark.once

Run = Callable[..., tuple[int, str, str]]


def converted(folder: Path, name: str, lines: list[str], **options: Any) -> str:
    """Convert lines of a CSV, and return the output."""
    source = folder / f"{name}.csv"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    recordgen.convert(str(source), folder / name, **options)
    return str(folder / name)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
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
def found(images: tuple[str, str]) -> Differences:
    return recordgen.diff(*images)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], as_loud_as_before: None) -> Run:
    """Return a function that runs the command: exit code, stdout, stderr."""

    def run(*args: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["diff", *map(str, args)])
        return code, *capsys.readouterr()

    return run


def write(folder: Path, splits: Mapping[str, list[dict[str, Any]]], kind: str = "") -> str:
    """Write records of any features into Split folders without a dataset.json; return the root."""
    for split, records in splits.items():
        (folder / f"Split-{split}").mkdir(parents=True)
        with (folder / f"Split-{split}" / f"data_tfrecord-00000-of-00001{kind}").open("wb") as file:
            frames = (frame(serialize_example(record)) for record in records)
            write_frames(file, frames, "gzip" if kind else "none")
    return str(folder)


def segment(start: float, label: bytes) -> dict[str, Any]:
    """Return the record of a segment of one video."""
    ends = {"video/segment/start": start, "video/segment/end": start + 1}
    return {"video/source_id": b"a.mp4", "video/class/text": label, **ends}


def kinds(found: Differences) -> Counter[tuple[str, ...]]:
    return Counter(item.kinds for item in found.changed)


# --- differences ------------------------------------------------------------------------------


def test_rows_of_images(found: Differences) -> None:
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


def test_rows_say_where_they_are(images: tuple[str, str], found: Differences) -> None:
    """The record of a row is found by its file and record number."""
    for row in found.added:
        record = list(read_records(storage.join(images[1], row.file)))[row.record]
        assert parse_example(record)["image/source_id"] == [row.uri.encode()]


def test_leaks_in_both_directions(found: Differences) -> None:
    """A payload of OLD's train in NEW's test is a leak under any name, and vice versa."""
    leaks = {(item.direction, item.old.uri, item.new.uri) for item in found.leaks}
    assert leaks == {
        ("train_to_evaluation", "0.png", "copy.png"),
        ("evaluation_to_train", "9.png", "9 again.png"),
    }
    assert found.leak_counts == {"train_to_evaluation": 1, "evaluation_to_train": 1}


def test_vocabulary_and_options(found: Differences) -> None:
    """Labels whose number changed are listed, and so are options that differ."""
    assert found.vocabulary is not None
    assert found.vocabulary.added == ("bee",)
    assert found.vocabulary.removed == ()
    assert found.vocabulary.renumbered == {"cat": (0, 1), "dog": (1, 2)}
    options = {item.name: (item.old, item.new) for item in found.options}
    assert options["seed"] == (0, 3)
    assert options["compression"] == ("none", "gzip")
    assert "labels" not in options


def test_drift(found: Differences) -> None:
    """Each split has the distances of label shares and of size distributions."""
    labels = {item.split: item for item in found.labels}
    assert list(labels) == ["all", "train", "eval", "test"]
    assert labels["train"].counts == {"bee": (0, 1), "cat": (3, 2), "dog": (3, 3)}
    assert labels["train"].distance == pytest.approx((1 / 6 + 1 / 6) / 2)
    assert labels["eval"].distance == pytest.approx(0.5)  # the dog went to test
    sizes = {item.split: item for item in found.sizes}
    assert sizes["train"].distance == pytest.approx(1 / 6)
    assert sizes["train"].new.width == (16, 16, 32)
    assert sizes["train"].old.height == (12, 12, 12)
    assert sizes["eval"].distance == 0


def test_total_variation() -> None:
    """Equal shares have distance 0, disjoint labels 1; without counts there is no distance."""
    assert total_variation({"a": 1, "b": 1}, {"a": 7, "b": 7}) == 0
    assert total_variation({"a": 3}, {"b": 1}) == 1
    assert total_variation({"cat": 1, "dog": 1}, {"cat": 3, "dog": 1}) == pytest.approx(0.25)
    assert total_variation({}, {"a": 1}) is None


def test_boxes(tmp_path: Path) -> None:
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
    text = difference_summary(found)
    assert "label 1, boxes 3" in text
    assert "3.png: boxes 1 → 2" in text
    assert "1.png: boxes\n" in text


def test_texts(tmp_path: Path) -> None:
    """Texts in rows are matched by content, texts in files by the file's name."""
    (tmp_path / "a.txt").write_text("a text in a file")
    lines = ["TRAIN,one text here,good", "TRAIN,another text here,bad", "TRAIN,a.txt,good"]
    options = {"task": "text_classification"}
    old = converted(tmp_path, "old", [*lines, "TEST,the last text,bad"], **options)
    (tmp_path / "a.txt").write_text("a text that changed")
    lines[1] = "TEST,another text here,good"
    found = recordgen.diff(
        old, converted(tmp_path, "new", [*lines, "TEST,new text,bad"], **options)
    )
    assert kinds(found) == Counter([("label", "split"), ("bytes",)])
    assert (len(found.added), len(found.removed), found.unchanged) == (1, 1, 1)
    assert found.leak_counts == {"train_to_evaluation": 1, "evaluation_to_train": 0}
    text = difference_summary(found)
    assert "another text here: label bad → good, split train → test" in text
    assert "new text (test, bad)" in text
    assert "the last text (test, bad)" in text
    sizes = {item.split: item for item in found.sizes}
    assert sizes["all"].old.width == (13, 14, 17)
    assert sizes["all"].old.height is None
    assert sizes["all"].distance == pytest.approx(0.25)  # 13, 13, 16, 17 and 8, 13, 17, 19 bytes


def test_tables(tmp_path: Path) -> None:
    """Rows of a table are matched by all columns except the target; equal rows one to one."""
    head = "split,age,job,source_id,target"
    rows = ["TRAIN,1,cook,a,yes", "TRAIN,2,cook,b,no", "TRAIN,2,cook,b,no", "TRAIN,3,baker,c,no"]
    old = converted(tmp_path, "old", [head, *rows, "TEST,4,smith,d,yes"], target_column="target")
    rows[0] = "TRAIN,1,cook,a,no"  # another target
    rows[2] = "TEST,2,cook,b,no"  # one of two that are equal moves
    rows[3] = "TRAIN,30,baker,c,no"  # another row
    new = converted(tmp_path, "new", [head, *rows, "TEST,4,smith,d,yes"], target_column="target")
    found = recordgen.diff(old, new)
    assert kinds(found) == Counter([("label",), ("split",)])
    assert (len(found.added), len(found.removed), found.unchanged) == (1, 1, 2)
    assert [item.new.labels for item in found.changed if item.kinds == ("label",)] == [("no",)]
    assert found.leak_counts["train_to_evaluation"] == 1
    assert found.added[0].uri == ""
    text = difference_summary(found)
    assert "age=30, job=baker, source_id=c, target=no (train, no)" in text
    assert found.sizes == ()


def test_number_targets_have_no_shares(tmp_path: Path) -> None:
    """A numeric target is compared row by row, and has no shares."""
    head = "age,price"
    rows = [f"{number},{number}.{number}5" for number in range(30)]
    options = {"task": "tabular", "target_column": "price"}
    old = converted(tmp_path, "old", [head, *rows], **options)
    rows[7] = "7,8.5"
    found = recordgen.diff(old, converted(tmp_path, "new", [head, *rows], **options))
    assert found.labels == ()
    [item] = found.changed
    assert (item.kinds, item.old.labels, item.new.labels) == (("label",), ("7.75",), ("8.5",))


def test_declared_columns(tmp_path: Path) -> None:
    """In a table with an image, other columns are features; the label may have any name."""
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes(encoded(noise(seed=number), "PNG"))
    schema = {"split": "split", "photo": "image", "age": "int", "breed": "label"}
    old = converted(tmp_path, "old", ["TRAIN,0.png,3,cat", "TRAIN,1.png,4,dog"], schema=schema)
    new = converted(tmp_path, "new", ["TRAIN,0.png,4,cat", "TRAIN,1.png,4,cat"], schema=schema)
    assert kinds(recordgen.diff(old, new)) == Counter([("features",), ("label",)])


def test_declared_columns_without_images(tmp_path: Path) -> None:
    """Without an image a row is matched by its columns, with any names and label numbers."""
    schema = {"split": "split", "source_id": "text", "age": "int", "breed": "label"}
    rows = ["TRAIN,a,1,cat", "TRAIN,b,2,dog", "TRAIN,c,3,dog"]
    old = converted(tmp_path, "old", rows, schema=schema)
    rows[1:] = ["TRAIN,b,2,cat", "TRAIN,c,4,bee"]  # bee takes number 0
    found = recordgen.diff(old, converted(tmp_path, "new", rows, schema=schema))
    assert kinds(found) == Counter([("label",)])
    assert (len(found.added), len(found.removed), found.unchanged) == (1, 1, 1)


# --- inputs -------------------------------------------------------------------------------------


def test_other_tools_files(images: tuple[str, str], tmp_path: Path) -> None:
    """Split folders without a dataset.json are compared, except vocabulary and options."""
    copy = tmp_path / "examples"
    shutil.copytree(images[0], copy)
    (copy / "dataset.json").unlink()
    found = recordgen.diff(images[0], copy)
    assert found.is_same
    assert (found.unchanged, found.vocabulary, found.options) == (10, None, ())
    assert (found.new.task, found.new.digest) == (None, None)
    assert list(found.new.splits.items()) == [("train", 6), ("eval", 2), ("test", 2)]


def test_dataset_json_and_urls(images: tuple[str, str], run: Run) -> None:
    """A dataset.json means its folder; a URL works like a path."""
    for file in Path(images[0]).rglob("*"):
        if file.is_file():
            path = f"memory://diff/{file.relative_to(images[0]).as_posix()}"
            storage.write_bytes(path, file.read_bytes())
    assert run(f"{images[0]}/dataset.json", "memory://diff")[0] == 0


def test_records_of_any_layout(tmp_path: Path) -> None:
    """A missing sha256 is computed; numbers serve as labels without texts; .gz is read."""
    image = {"image/source_id": b"a", "image/encoded": b"bytes", "image/height": [3, 4]}
    sha256 = b"277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9"
    known = {"image/source_id": b"a", "image/encoded": b"bytes", "image/key/sha256": sha256}
    old = write(tmp_path / "old", {"train": [{**image, "image/class/label": 3}]}, ".gz")
    new = write(tmp_path / "new", {"train": [{**known, "image/class/label": -1}]})
    [item] = recordgen.diff(old, new).changed
    assert (item.kinds, item.old.labels, item.new.labels) == (("label",), ("3",), ())


def test_a_stored_sha256_is_believed(tmp_path: Path) -> None:
    """An image is not hashed if its record has a sha256; another tool's key is ignored."""

    def row(uri: bytes, image: bytes, key: bytes) -> dict[str, Any]:
        return {"image/source_id": uri, "image/encoded": image, "image/key/sha256": key}

    old = [row(b"a", b"1", b"0" * 64), row(b"b", b"1", b"key"), row(b"c", b"1", b"z" * 64)]
    new = [row(b"a", b"2", b"0" * 64), row(b"b", b"2", b"key"), row(b"c", b"2", b"z" * 64)]
    roots = (write(tmp_path / name, {"train": rows}) for name, rows in (("old", old), ("new", new)))
    assert [item.new.uri for item in recordgen.diff(*roots).changed] == ["b", "c"]


def test_splits_are_known_by_name(tmp_path: Path) -> None:
    """A split that only one dataset has does not move rows of other splits."""
    rows = [{"source_id": b"%d" % n, "text": b"text %d" % n} for n in range(3)]
    old = write(tmp_path / "old", {"train": rows[:1], "test": rows[1:]})
    new = write(tmp_path / "new", {"test": rows[1:], "extra": rows[:1]})
    found = recordgen.diff(old, new)
    assert (found.moves, found.unchanged) == ((("train", "extra", 1),), 2)


def test_many_blocks_of_rows(found: Differences, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are the same in many blocks."""
    monkeypatch.setattr("recordgen.comparing.rows.BLOCK_ROWS", 2)
    again = recordgen.diff(found.old.path, found.new.path)
    assert "".join(again.json_pieces()) == "".join(found.json_pieces())


def test_features_that_nobody_knows(tmp_path: Path) -> None:
    """Records without a uri or payload are matched by all their features."""
    old = write(tmp_path / "old", {"train": [{"x": 1.5, "name": b"a"}, {"x": 2.5, "name": b"b"}]})
    other = {"x": [7, 8], "y": b"\xff\x00\xfe"}
    new = write(tmp_path / "new", {"train": [{"x": 2.5, "name": b"b"}], "test": [other]})
    found = recordgen.diff(old, new)
    assert (len(found.added), len(found.removed), found.unchanged) == (1, 1, 1)
    assert found.labels == found.sizes == ()
    text = difference_summary(found)
    assert "  x=7 8, y=3 bytes (test)\n" in text
    assert text.endswith("  name=a, x=1.5 (train)")


def test_segments_of_one_video(tmp_path: Path) -> None:
    """Among rows of one uri, only changed rows count as changed; a video leaks as a whole."""
    clips = [segment(float(start), b"run") for start in range(5)]
    old = write(tmp_path / "old", {"train": clips})
    moved = [clips[0], segment(1.0, b"jump"), segment(2.5, b"run"), clips[3]]
    found = recordgen.diff(old, write(tmp_path / "new", {"train": moved, "test": [clips[4]]}))
    assert kinds(found) == Counter([("label",), ("annotation",), ("split",)])
    assert (found.unchanged, found.added[:], found.removed[:]) == (2, [], [])
    assert {item.new.objects for item in found.changed} == {0}
    assert found.leak_counts == {"train_to_evaluation": 1, "evaluation_to_train": 0}


def test_segments_with_other_labels(tmp_path: Path) -> None:
    """Among rows of one uri, rows that differ only in the label are matched first."""
    old = write(tmp_path / "old", {"train": [segment(0.0, b"run"), segment(1.0, b"run")]})
    new = write(tmp_path / "new", {"train": [segment(1.0, b"jump"), segment(0.0, b"sit")]})
    assert kinds(recordgen.diff(old, new)) == Counter([("label",)] * 2)


def test_equal_rows_are_matched_one_to_one(tmp_path: Path) -> None:
    """Additional copies of a row count as added, and nothing counts as changed."""

    def row(label: bytes) -> dict[str, Any]:
        return {"source_id": b"a", "text": b"a text", "class/text": label}

    old = write(tmp_path / "old", {"train": [row(b"x"), row(b"y")]})
    new = write(tmp_path / "new", {"train": [row(b"y"), row(b"y"), row(b"x"), row(b"z")]})
    found = recordgen.diff(old, new)
    assert (sorted(item.labels for item in found.added), len(found.changed)) == (
        [("y",), ("z",)],
        0,
    )
    back = recordgen.diff(new, old)
    assert (sorted(item.labels for item in back.removed), back.unchanged) == ([("y",), ("z",)], 2)


# --- the command ---------------------------------------------------------------------------------


def test_text(images: tuple[str, str], run: Run) -> None:
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


def test_long_lists_are_cut(tmp_path: Path, run: Run) -> None:
    """Text has ten rows of a kind and their number; JSON has all."""
    texts = [{"source_id": b"%d" % n, "text": b"text %d" % n} for n in range(13)]
    old, new = (
        write(tmp_path / "old", {"train": texts[:1]}),
        write(tmp_path / "new", {"eval": texts}),
    )
    _, out, _ = run(old, new)
    assert "  … and 2 more (--json lists all)" in out
    assert len(json.loads(run(old, new, "--json")[1])["added"]) == 12


def test_json(images: tuple[str, str], found: Differences, run: Run) -> None:
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
    }
    assert {tuple(item["kinds"]) for item in data["changed"]} == {
        ("label",),
        ("bytes",),
        ("split",),
    }
    assert {item["direction"] for item in data["leaks"]} == set(found.leak_counts)
    same = json.loads(run(images[0], images[0], "--json")[1])
    assert (same["same"], same["added"], same["leaks"]) == (True, [], [])


def test_exit_codes(images: tuple[str, str], tmp_path: Path, run: Run) -> None:
    """0 if they are the same; 1 if they differ or leak, unless --fail-on allows it."""
    old, new = images
    text = {"source_id": b"a", "text": b"the same text"}
    other = {**text, "source_id": b"b"}
    leaking = write(tmp_path / "leaking", {"train": [text], "test": [other]})
    clean = write(tmp_path / "clean", {"train": [text]})
    cleaner = write(tmp_path / "cleaner", {"train": [text, {**text, "text": b"new"}]})
    expected: dict[tuple[str, ...], int] = {
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


def test_numbers_of_labels_are_a_change(tmp_path: Path, run: Run) -> None:
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


WRONG: list[tuple[list[str], int, str]] = [
    (["{old}"], 2, "required: NEW"),
    (["{old}", "{new}", "--fail-on", "leak"], 2, "must be changes, leaks, changes,leaks or none"),
    (["{old}", "{new}", "--fail-on="], 2, "must be changes, leaks, changes,leaks or none (got '')"),
    (["{old}", "{old}/none"], 1, "none: no dataset.json and no Split-* folders with files here"),
    (["{old}", ""], 2, "new must be the path or URL of a dataset (got '')"),
    (["{old}", "{new}", "--", "--runner=X"], 2, "diff runs no pipeline"),
]


@pytest.mark.parametrize(("args", "code", "words"), WRONG, ids=[" ".join(w[0]) for w in WRONG])
def test_wrong_calls(
    args: list[str],
    code: int,
    words: str,
    images: tuple[str, str],
    run: Run,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A wrong call gives an exit code and one message."""
    got, out, _ = run(*(arg.format(old=images[0], new=images[1]) for arg in args))
    assert (got, out) == (code, "")
    [message] = caplog.messages
    assert words in message


def test_damaged_datasets(images: tuple[str, str], tmp_path: Path) -> None:
    """The message names a shard that is missing, truncated or not TFRecord."""
    old = Path(shutil.copytree(images[0], tmp_path / "old"))
    [shard] = (old / "Split-test").iterdir()
    data = shard.read_bytes()
    shard.write_bytes(data[:-1])
    with pytest.raises(RecordError, match=r"Split-test/data.*truncated"):
        recordgen.diff(images[0], old)
    with shard.open("wb") as file:
        write_frames(file, [frame(serialize_example({"x": 1})), frame([b"no example"])], "none")
    with pytest.raises(RecordError, match=r"Split-test/data.*: record 1: not a tf\.train\.Example"):
        recordgen.diff(old, images[0])
    shard.unlink()
    with pytest.raises(SourceError, match=r"Split-test/data.*names this shard.*cannot be read"):
        recordgen.diff(images[0], old)
    with pytest.raises(UsageError, match="old must be"):
        recordgen.diff(" ", images[0])


# --- the page -------------------------------------------------------------------------------------


def test_page(images: tuple[str, str], tmp_path: Path, run: Run) -> None:
    """--html writes a self-contained page with the content of the text."""
    path = tmp_path / "pages" / "diff.html"
    code, out, _ = run(*images, "--html", path)
    assert code == 1
    assert out.endswith(f"\nwrote {path}\n")
    page = self_contained(path.read_text(encoding="utf-8"))
    assert ["copy.png", "test", "0.png", "train"] in page.table("row of NEW")
    assert ["1.png", "train", "label dog → bee"] in page.table("what differs")
    assert ["test", "2", "4", "+2"] in page.table("change")
    assert ["seed", "0", "3"] in page.table("what")
    assert "prefers-color-scheme: dark" in path.read_text(encoding="utf-8")


@pytest.fixture(params=range(len(HOSTILE)))
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Differences]:
    text = HOSTILE[request.param]
    row = {"source_id": text.encode(), "text": text.encode(), "class/text": text.encode()}
    old = write(tmp_path / "old", {"train": [row]})
    other = {**row, "class/text": b"x", "source_id": b"y"}
    return text, recordgen.diff(old, write(tmp_path / "new", {"train": [other], "test": [row]}))


def test_hostile_text_is_shown(hostile: tuple[str, Differences]) -> None:
    """Uris and labels are only ever text on the page."""
    text, found = hostile
    page = self_contained(to_html(found))
    text = seen(text)
    assert text in [row[0] for row in page.table("what differs")]
