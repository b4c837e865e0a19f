"""Exports that copy examples: same bytes, finished after a kill, refusals before the first byte."""

import json
import shutil
import time
from functools import partial
from itertools import count as counting

import pytest

import recordgen
from recordgen import errors, storage
from recordgen.cli import main
from recordgen.core.dataset.manifest import COPY_FILE as MARK
from recordgen.exports import export as exporting
from recordgen.registry import EXPORTS
from tests.conftest import changed_manifest, encoded, flip_bit, noise, peak_of, tree_bytes
from tests.exports.copies import COPIES, boxes, converted, export, export_and_die, labelled


@pytest.fixture(scope="module")
def detection(tmp_path_factory):
    return boxes(tmp_path_factory.mktemp("boxes"))


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    return labelled(tmp_path_factory.mktemp("labelled"))


@pytest.fixture(scope="module", params=COPIES)
def whole(request, detection, classes, tmp_path_factory):
    """A copy: name of the export, the dataset, files of the copy."""
    out = classes if request.param == "folder" else detection
    folder = tmp_path_factory.mktemp(request.param)
    export(request.param, out, folder / "to")
    return request.param, out, tree_bytes(folder / "to")


def test_a_killed_copy_is_finished_by_the_next_run(whole, tmp_path):
    """The files after a kill and a second run are those of one run; a third changes nothing.

    Images and shards that the killed run wrote are not written again.
    """
    name, out, expected = whole
    killed = tmp_path / "killed"
    assert export_and_die(name, out, killed, 12) == 9
    left = tree_bytes(killed)
    assert json.loads(left.pop(MARK))["finished"] is False
    is_complete = {path: expected.get(path) == data for path, data in left.items()}
    assert all(path.endswith(".tmp") for path, same in is_complete.items() if not same)
    assert len(left) < len(expected)
    kept = {path: path.stat().st_mtime_ns for path in killed.rglob("*.*")}
    kept = {path: time for path, time in kept.items() if path.suffix not in (".tmp", ".json")}
    assert kept
    (killed / "left.json.0123456789abcdef0123456789abcdef.tmp").write_bytes(b"half")
    export(name, out, killed)
    assert tree_bytes(killed) == expected
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert json.loads(expected[MARK])["finished"] is True
    times = {path: path.stat().st_mtime_ns for path in killed.rglob("*")}
    export(name, out, killed)
    assert {path: path.stat().st_mtime_ns for path in killed.rglob("*")} == times


def test_a_copy_that_lost_a_file_is_finished_again(whole, tmp_path):
    """Files of the user's own beside it hide no loss."""
    name, out, expected = whole
    to = tmp_path / "to"
    export(name, out, to)
    lost = max(set(expected) - {MARK, "labels.txt", "data.yaml"})
    (to / lost).unlink()
    (to / "README.md").write_text("mine")
    export(name, out, to)
    assert tree_bytes(to).keys() == {*expected, "README.md"}
    assert (to / lost).read_bytes() == expected[lost]


def test_a_store_has_the_same_files(whole):
    """Files in a bucket can only be written from the beginning to the end."""
    name, out, expected = whole
    place = f"memory://copies/{name}"
    export(name, out, place)
    for path, data in expected.items():
        if path != "import.csv":  # has whole URLs there
            assert storage.read_bytes(f"{place}/{path}") == data


def test_one_split_is_copied_alone(detection, tmp_path):
    """By its name or a word for it; an unknown one is an error."""
    to = f"{tmp_path}/to"
    assert main(["export", "coco", str(detection), "--to", to, "--split", "validation"]) == 0
    names = {path.split("/")[0] for path in tree_bytes(tmp_path / "to")}
    assert names == {MARK, "annotations", "val"}
    with pytest.raises(errors.SplitNotFoundError, match="'cat'"):
        export("coco", detection, tmp_path / "other", split="cat")
    assert main(["export", "coco", str(detection), "--to", to, "--split", "cat"]) == 2
    assert main(["inspect", str(detection), "--split", "cat"]) == 2


@pytest.mark.parametrize("name", ["webdataset", "parquet"])
def test_two_splits_of_one_name_in_a_copy(name, tmp_path):
    """They are an error before the first byte; each can be exported alone."""
    out, to = tmp_path / "out", tmp_path / "to"
    for split in ("train", "eval", "val", "validation"):
        recordgen.write([{"x": 1}], out, split=split)
    with pytest.raises(errors.UsageError, match="--split") as caught:
        export(name, out, to)
    assert type(caught.value) is errors.UsageError
    assert not to.exists()
    export(name, out, to, split="val")
    assert json.loads((to / MARK).read_text())["splits"] == ["val"]


def test_another_copy_is_kept(detection, classes, tmp_path):
    """A folder with a copy of another dataset, other splits or other files is an error."""
    export("automl", detection, tmp_path / "to", split="train")
    before = tree_bytes(tmp_path / "to")
    for name, out, options in (
        ("automl", detection, {}),
        ("automl", classes, {"split": "train"}),
        ("coco", detection, {"split": "train"}),
    ):
        with pytest.raises(errors.OutputExistsError, match=str(tmp_path / "to")):
            export(name, out, tmp_path / "to", **options)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    with pytest.raises(errors.OutputExistsError, match=str(tmp_path / "mine")):
        export("coco", detection, tmp_path / "mine")
    assert tree_bytes(tmp_path / "to") == before


@pytest.mark.parametrize(
    ("to", "fact"),
    [(None, "--to"), (".", "{out}"), ("copy", "{out}"), ("http://host/copy", "http://host/copy")],
)
def test_where_copies_cannot_be(detection, to, fact):
    """A copy needs a folder, which is not in the dataset."""
    if to is not None and "://" not in to:
        to = str(detection / to)
    with pytest.raises(errors.UsageError, match=fact.format(out=detection)):
        EXPORTS["coco"]().export(str(detection), exporting.ExportOptions(to=to))
    assert not (detection / MARK).exists()


def images(folder, kind="PNG", fields=",a"):
    """Write three images; return the lines of their CSV."""
    names = [f"{number}.{kind.lower()}" for number in range(3)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(encoded(noise(seed=number), kind))
    return [f"TRAIN,{name}{fields}" for name in names]


ONE, BOXES = {"task": "image_classification"}, {"task": "object_detection"}
UNLABELLED, BOX = {**ONE, "labels": "none"}, ",a,0,0,,,1,1,,"

# export; kind of the images, fields of their rows, options of their conversion; fact of the error
REFUSED = [
    ("tfds", "PNG", ",a", {**ONE, "encode": "raw"}, "raw pixels"),
    ("tfds", "PNG", ",a", {**ONE, "compression": "gzip"}, "compressed"),
    ("yolo", "GIF", BOX, {**BOXES, "check": "none"}, "GIF"),
    ("folder", "PNG", "", UNLABELLED, "'train'"),
    ("folder", "PNG", ",a/b", ONE, "'a/b'"),
    ("folder", "PNG", ",.a", ONE, "'.a'"),
    ("folder", "PNG", ",a,b", {"task": "image_multi_label"}, "image_multi_label"),
    ("coco", "PNG", "", UNLABELLED, "image_classification"),
]


@pytest.mark.parametrize(("name", "kind", "fields", "options", "fact"), REFUSED)
def test_what_a_format_cannot_hold(name, kind, fields, options, fact, tmp_path):
    """It is said before the first byte, and what is wrong."""
    out = converted(tmp_path, images(tmp_path, kind, fields), **options)
    before = tree_bytes(tmp_path)
    with pytest.raises(errors.UsageError, match=fact):
        export(name, out, None if name == "tfds" else tmp_path / "to")
    assert tree_bytes(tmp_path) == before


LOSSY = [("yolo", "GIF", BOX), ("automl", "WEBP", ",a"), ("folder", "PNG", "")]


@pytest.mark.parametrize(("name", "kind", "fields"), LOSSY)
def test_lossy_leaves_out_what_a_format_cannot_hold(name, kind, fields, tmp_path):
    """All other images are in the copy."""
    (tmp_path / "good.png").write_bytes(encoded(noise(seed=9), "PNG"))
    lines = [*images(tmp_path, kind, fields), f"TRAIN,good.png{fields or ',a'}"]
    out = converted(tmp_path, lines, check="none", **BOXES if fields == BOX else ONE)
    export(name, out, tmp_path / "to", lossy=True)
    copied = (path.name for path in (tmp_path / "to").rglob("*") if path.is_file())
    assert [it for it in copied if it.endswith((".png", f".{kind.lower()}"))] == ["good.png"]


# export, a record from Python, what the error names
UNFIT = [
    ("webdataset", {"x": 1, "blob": b"\xff"}, "'blob'"),  # JSON has no such text
    ("parquet", {"x/encoded": b"1", "x": 1}, "column 'x'"),  # two features of one name
]


@pytest.mark.parametrize(("name", "record", "fact"), UNFIT)
def test_records_that_a_format_cannot_hold(name, record, fact, tmp_path):
    """They are an error before the first byte."""
    recordgen.write([record], tmp_path / "out")
    with pytest.raises(errors.UsageError, match=fact):
        export(name, tmp_path / "out", tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_boxes_need_sizes(tmp_path, detection):
    """Boxes are shares; without the sizes of the images they cannot become pixels."""
    path = shutil.copytree(detection, tmp_path / "copy")
    with changed_manifest(path) as values:
        values["splits"]["eval"]["images"] = None
    for name in ("coco", "parquet", "webdataset"):
        with pytest.raises(errors.UsageError, match="'eval'"):
            export(name, path, tmp_path / name)
        export(name, path, tmp_path / name, split="train")


def test_equal_names_are_numbered(tmp_path):
    """Names stay, unless two of a split are equal in any case; raw pixels are copied as PNGs."""
    names = ("a/x.png", "b/X.png", "c/y.png", "d/x.png", "d/..y.png")
    for number, name in enumerate(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(encoded(noise(seed=number), "PNG"))
    lines = [f"{'TEST' if name[0] == 'd' else 'TRAIN'},{name},cat" for name in names]
    export("folder", converted(tmp_path, lines, encode="raw", **ONE), tmp_path / "to")
    names = {path.name.lower() for path in (tmp_path / "to/train/cat").iterdir()}
    assert {name[8:] for name in names} == {"-x.png", "-y.png"}
    assert sorted(name[:8] for name in names) == ["00000000", "00000001", "00000002"]
    assert {path.name for path in (tmp_path / "to/test/cat").iterdir()} == {"x.png", "y.png"}
    assert (tmp_path / "to/test/cat/x.png").read_bytes()[:4] == b"\x89PNG"


def test_a_damaged_shard_names_itself(tmp_path):
    """And the copy stays unfinished."""
    out = labelled(tmp_path)
    shard = next((out / "Split-train").iterdir())
    flip_bit(shard, 40)
    with pytest.raises(errors.RecordError, match=shard.name):
        export("folder", out, tmp_path / "to")
    assert json.loads((tmp_path / "to" / MARK).read_text())["finished"] is False


def test_arrayrecord_names_its_package(classes, tmp_path, monkeypatch):
    """A missing library is an error before the first byte."""
    monkeypatch.setitem(__import__("sys").modules, "array_record.python", None)
    with pytest.raises(errors.MissingPackageError, match="pip install array_record"):
        export("arrayrecord", classes, tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_a_long_copy_shows_its_progress(classes, tmp_path, monkeypatch, stdout_of, json_of, caplog):
    """Lines of the log; a short copy has none, and neither has --json on stdout."""
    command, a, b = ("export", "automl", classes, "--to"), str(tmp_path / "a"), str(tmp_path / "b")
    assert stdout_of(*command, a) == f"wrote {a}\n"
    assert not caplog.messages
    monkeypatch.setattr(time, "monotonic", counting(0, 3).__next__)  # three seconds for each look
    assert json_of(*command, b) == {"written": [b]}
    assert caplog.messages[0].startswith("1 of 14 examples")
    assert caplog.messages[-1].startswith("14 of 14 examples (100%)")


def test_options_of_other_exports(detection, caplog):
    """Only copies take --to and --split."""
    for option in ("--to", "--split"):
        assert main(["export", "croissant", str(detection), option, "x"]) == 2
        assert caplog.messages[-1] == f"export croissant takes no {option}"
    for name in ("croissant", "coco"):
        assert main(["export", name, str(detection), "x"]) == 2
        assert ("--to x" in caplog.messages[-1]) == (name == "coco")


def test_memory_does_not_grow(tmp_path):
    """A row group, the images in flight and one example are in memory, not a shard."""
    peaks = {}
    for count in (200, 800):
        folder = tmp_path / str(count)
        rows = ({"image/encoded": bytes(20_000), "n": number} for number in range(count))
        recordgen.write(rows, folder / "out", shards=1)
        _, peaks[count] = peak_of(partial(export, "parquet", folder / "out", folder / "to"))
    assert peaks[800] < peaks[200] * 1.5
