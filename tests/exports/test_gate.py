"""Nothing leaves the folder: names from records, manifests, labels and uris pass one gate."""

import ast
import json
import os
import shutil
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path

import pytest

import recordgen
from recordgen import storage
from recordgen.cli import main
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.errors import RecordError, RecordgenError, SourceError, UsageError
from recordgen.exports import ExportOptions
from recordgen.exports.copying import file_name
from recordgen.exports.export import read_lines
from recordgen.exports.inspection import inspect
from recordgen.registry import EXPORTS
from recordgen.rejects import Reject
from tests.conftest import (
    changed_manifest,
    encoded,
    noise,
    rewrite_records,
    tree_bytes,
    write_noise,
)
from tests.exports.copies import COPIES, boxes, converted, export, labelled

PACKAGE = Path(recordgen.__file__).parent

# --- names ---------------------------------------------------------------------------------------

REFUSED = [
    *("", ".", "..", "../x", "a/../../b", "a/..", "/etc/x", "//x", "a//b", "a/", "./a", "..\\x"),
    *("C:", "C:x", "c:/x", "a/C:\\x", "\\\\server\\x", "a\\b", "x\0y", "x\ny", "x\x7f", "x\x9f"),
    *("con", "CON", "a/Nul.txt", "com1", "LPT9.tar.gz", "com¹", "aux .x", "prn/x", "CONIN$"),
    *("x.", "x ", "a./b", "a /b", "... ", "\ud800", "x" * 256, "é" * 128, "x/" * 3000 + "x"),
]
ACCEPTED = [
    *("x", ".x", "..x", "a/b/c.png", "x..y", "connect", "com10", "nulls.txt", "ab:c", "é", "猫"),
    *("=1+1", "-x", "~", "x" * 255, "x y", "a b/.hidden", "👩\u200d🔬.png"),
]


@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_a_name_that_leaves_the_folder_is_refused(name, tmp_path):
    """On any system, locally and in a store; the error names the folder and the name."""
    for folder in (str(tmp_path), "memory://gate"):
        with pytest.raises(RecordError, match=folder):
            storage.inside(folder, name)


@pytest.mark.parametrize("name", ACCEPTED, ids=ascii)
def test_a_name_of_a_file_below_the_folder_is_accepted(name, tmp_path):
    """The path is that of the folder and the name."""
    assert storage.inside(str(tmp_path), name) == f"{tmp_path}/{name}"
    assert storage.inside("memory://gate", name) == f"memory://gate/{name}"


def test_a_link_in_the_folder_that_leads_out_is_refused(tmp_path):
    """A link that leads to a folder inside is none, and neither is one of the file itself."""
    to, out = tmp_path / "to", tmp_path / "out"
    (to / "real").mkdir(parents=True)
    out.mkdir()
    (to / "evil").symlink_to(out)
    (to / "real/up").symlink_to("../..")
    (to / "fine").symlink_to(to / "real")
    for name in ("evil/x", "real/up/x", "fine/up/x", "evil/y/z"):
        with pytest.raises(UsageError, match=str(to)):
            storage.inside(str(to), name)
    (to / "link").symlink_to(out / "x")
    for name in ("fine/x", "link"):
        storage.write_text(storage.inside(str(to), name), "x")
    assert os.listdir(out) == []


@pytest.mark.parametrize("uri", ["con.png", "gs://b/AUX", "a/..", "C:\\x.py", "x\x9f.png", "", "."])
@pytest.mark.parametrize("kind", ["png", "jpeg", "webp", ""])
def test_the_name_of_an_image_is_always_one_of_a_file(uri, kind):
    """Whatever its uri is, its suffix is that of its format."""
    name = file_name(uri, kind)
    assert not storage.name_fault(name)
    assert name.rpartition(".")[2] in (kind or "bin", "jpg")


# --- code ----------------------------------------------------------------------------------------

# Rooms whose names of files may come from elsewhere.
ROOMS = (
    *("access", "checks", "console", "exports", "formats", "payloads", "tables", "tasks"),
    "storage/copies.py",
)

WRITERS = {
    "storage": {"write_text", "write_bytes", "replacing", "move", "local", "remote"},
    "os": {"open", "makedirs", "mkdir", "rename", "renames", "replace", "symlink", "link", "mknod"},
    "shutil": {"copy", "copyfile", "copy2", "copytree", "move", "unpack_archive"},
}
METHODS = {"write_text", "write_bytes", "mkdir", "touch", "symlink_to", "hardlink_to"}
GATES = ("storage.inside", "copy.path", "self.path", "cache_file")

# module, writer → why it needs no gate
BY_HAND = {
    ("payloads/parquet_values.py", "os.mkdir"): "the folder of unpacked columns, a name of ours",
    ("payloads/parquet_values.py", "storage.replacing"): "the path is made by storage.inside",
    ("payloads/parquet_values.py", "open"): "a mark beside the path that storage.inside made",
    ("access/files.py", "os.open"): "a shard, for reading only",
    ("console/terminal.py", "os.open"): "the null device",
    ("storage/copies.py", "os.open"): "a lock beside a path that its caller made",
}


def is_gated(node, function):
    """Return whether the first argument of a call is a path of the gate."""
    if not node.args:
        return False
    first = node.args[0]
    values = [first]
    if isinstance(first, ast.Name):
        values = [
            each.value
            for each in ast.walk(function)
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == first.id
        ]
    texts = [ast.unparse(value).removeprefix("options.output or ") for value in values]
    return bool(texts) and all(text.split("(")[0] in GATES for text in texts)


def writer_of(node):
    """Return the name of the writer that a call calls; empty if it calls none."""
    name = ast.unparse(node.func)
    base, _, last = name.rpartition(".")
    if name in ("open", "io.open") or (last == "open" and base == "Path"):
        mode = node.args[1] if len(node.args) > 1 else ast.Constant("r")
        mode = next((it.value for it in node.keywords if it.arg == "mode"), mode)
        is_reading = isinstance(mode, ast.Constant) and not set(str(mode.value)) & set("wax+")
        return "" if is_reading else "open"
    is_writer = last in WRITERS.get(base, ()) or (base != "storage" and last in METHODS)
    return name if is_writer else ""


def test_rooms_write_only_to_paths_of_the_gate():
    """A call that opens a file for writing, or makes or moves one, has a path of the gate."""
    odd = []
    files = [path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")]
    for path in (*files, *(PACKAGE / room for room in ROOMS if room.endswith(".py"))):
        module = str(path.relative_to(PACKAGE))
        tree = ast.parse(path.read_text())
        functions = [it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef)]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in ("recordgen.storage", *WRITERS):
                names = {it.name for it in node.names}
                assert not names & {*METHODS, *(each for it in WRITERS.values() for each in it)}
            if not isinstance(node, ast.Call) or not (writer := writer_of(node)):
                continue
            inner = [it for it in functions if it.lineno <= node.lineno <= it.end_lineno]
            if not is_gated(node, max(inner, key=lambda it: it.lineno, default=tree)):
                odd.append((module, writer))
    assert set(odd) == BY_HAND.keys()


# --- exports -------------------------------------------------------------------------------------

HOLD_BOXES = ("yolo", "coco")


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """Return a dataset with boxes, and one with labels."""
    return {
        True: boxes(tmp_path_factory.mktemp("boxes")),
        False: labelled(tmp_path_factory.mktemp("labelled")),
    }


def forged(out, to, **features):
    """Copy a dataset, with other values in all of its records; None removes a feature."""
    shutil.copytree(out, to)
    with changed_manifest(to) as values:
        for split in values["splits"].values():
            for shard in split["shards"]:
                rewrite_records(to / shard["file"], lambda known: known | features)
                shard["bytes"] = (to / shard["file"]).stat().st_size
            split["bytes"] = sum(shard["bytes"] for shard in split["shards"])
    return to


OUTSIDE = [
    *(b"../../x", b"/x", b"/../../../x.py", b"..", b"C:\\x", b"\\\\h\\x", b"x\0y", b"a/b", b".x"),
]


@pytest.mark.parametrize("value", OUTSIDE, ids=ascii)
@pytest.mark.parametrize("name", ["image/class/text", "image/format", "image/source_id"])
def test_no_record_names_a_file_outside(name, value, datasets, tmp_path):
    """Neither by its label, nor by its format, nor by its uri; `inspect --to` included."""
    for kind in COPIES:
        place = tmp_path / kind
        evil = forged(datasets[kind in HOLD_BOXES], place / "evil", **{name: [value]})
        before = tree_bytes(place)
        to = place / "deep/er/to"
        with suppress(RecordgenError):
            export(kind, evil, to)
        if kind in HOLD_BOXES:
            inspect(str(evil), to=str(to / "seen"))
        after = {path for path in tree_bytes(place) if path not in before}
        assert all(path.startswith("deep/er/to/") for path in after), after
        assert not any(path.endswith(".py") for path in after)


def test_a_format_that_is_not_stored_is_read_from_the_bytes(datasets, tmp_path):
    """``JPG`` and other words of other writers give the suffix of the file; no image gives none."""
    evil = forged(datasets[False], tmp_path / "evil", **{"image/format": [b"../x.py"]})
    export("folder", evil, tmp_path / "to")
    suffixes = {path.rsplit(".")[-1].lower() for path in tree_bytes(tmp_path / "to")}
    assert suffixes - {"txt"} == {"jpg", "jpeg", "png", "json"}
    other = forged(evil, tmp_path / "other", **{"image/encoded": [b"PWNED"]})
    with pytest.raises(RecordError, match="record 0: image/encoded"):
        export("folder", other, tmp_path / "none")


def test_a_label_of_another_vocabulary_is_no_folder(datasets, tmp_path):
    """A record has one label, which dataset.json has, too."""
    for number, labels in enumerate(([b"mouse"], [], [b"cat", b"dog"], [b"\xff"], [1])):
        evil = forged(datasets[False], tmp_path / f"{number}", **{"image/class/text": labels})
        with pytest.raises(RecordError, match="record 0: "):
            export("folder", evil, tmp_path / f"to{number}")


def test_links_in_a_dataset_or_a_copy_lead_nowhere(datasets, tmp_path):
    """Files beside shards, and those of a resumed copy, stay in their folders."""
    evil, out = tmp_path / "evil", tmp_path / "out"
    shutil.copytree(datasets[False], evil)
    out.mkdir()
    (evil / "croissant.json").unlink()
    (evil / "croissant.json").symlink_to(out / "x")
    EXPORTS["croissant"]().export(str(evil), ExportOptions())
    assert not (evil / "croissant.json").is_symlink()
    export("folder", evil, tmp_path / "to")
    mark = tmp_path / "to/.recordgen-export.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "finished": False}))
    shutil.rmtree(tmp_path / "to/train")
    (tmp_path / "to/train").symlink_to(out)
    with pytest.raises(UsageError, match=str(tmp_path / "to")):
        export("folder", evil, tmp_path / "to")
    assert os.listdir(out) == []


# labels; the words that the warning of `export folder` or `export automl` quotes
ONE_FOLDER = [
    (["Cat", "cat"], "folder", ["'Cat'", "'cat'"]),
    (["caf\u00e9", "cafe\u0301"], "folder", ["'caf\\xe9'", "'cafe\\u0301'"]),
    (["cat", "dog"], "folder", []),
    (["=1+1", "+x", "-x", "@x", "x=1"], "automl", ["'=1+1'", "'+x'", "'-x'", "'@x'"]),
    (["x=1", "y"], "automl", []),
]


@pytest.mark.parametrize(("labels", "kind", "words"), ONE_FOLDER, ids=ascii)
def test_labels_that_mean_something_elsewhere_are_named(labels, kind, words, tmp_path, caplog):
    """One folder on macOS and Windows, formulas of a spreadsheet: a warning, exit 0, all files."""
    write_noise(tmp_path, range(len(labels)))
    lines = [f"TRAIN,{number}.png,{label}" for number, label in enumerate(labels)]
    out = converted(tmp_path, lines, task="image_classification")
    assert main(["export", kind, str(out), "--to", f"{tmp_path}/to"]) == 0
    warned = [it.getMessage() for it in caplog.records if it.name.startswith("recordgen.exports")]
    assert len(warned) == bool(words)
    assert all(word in text for text in warned for word in words)
    images = [path for path in tree_bytes(tmp_path / "to") if path.endswith(".png")]
    assert len(images) == len(labels)


# Values of a feature that no conversion writes: other types, numbers, counts and texts.
ODD = [
    *([], [0], [-1], [2**63 - 1], [1.5], [float("nan")], [float("inf")], [b""], [b"\xff"]),
    *([b"x\0y"], [b"../../x"], [b"x" * 70_000], [0] * 5_000, [b"a", b"b"], [0.5] * 3, [b"raw"]),
]
READERS = (*COPIES, "croissant", "tfds", "tfdv", "report", "inspect")


@pytest.mark.parametrize("has_boxes", [False, True])
def test_an_odd_record_is_an_error_or_harmless(has_boxes, tmp_path):
    """Each feature with each odd value, through the exports in turn: no traceback, no file."""
    (tmp_path / "x.png").write_bytes(encoded(noise(seed=1), "PNG"))
    line = "TRAIN,x.png,a,0,0,,,1,1,," if has_boxes else "TRAIN,x.png,a"
    task = "object_detection" if has_boxes else "image_classification"
    out = converted(tmp_path, [line], task=task)
    [shard] = (out / "Split-train").iterdir()
    names = sorted(parse_example(next(iter(RECORDS.read(str(shard))))))
    kinds = cycle([kind for kind in READERS if has_boxes or kind not in HOLD_BOXES])
    for name in names:
        for values in ODD:
            place = tmp_path / "place"
            evil = forged(out, place / "evil", **{name: values})
            before = set(tree_bytes(place))
            for kind in islice(kinds, 2):
                with suppress(RecordgenError):
                    if kind == "inspect":
                        inspect(str(evil), to=str(place / "a/to" / kind))
                    elif kind in COPIES:
                        export(kind, evil, place / "a/to" / kind)
                    else:
                        EXPORTS[kind]().export(str(evil), ExportOptions())
            added = set(tree_bytes(place)) - before
            assert all(path.startswith(("a/to/", "evil/")) for path in added), (name, values)
            shutil.rmtree(place)


# a sample, a feature of its records, values that do not fit
UNFIT = [
    ("text_entities", "entity/class/text", [1.5]),
    ("image_segmentation", "image/segmentation/class/encoded", [5]),
    ("video_classification", "video/uri", [5]),
]


@pytest.mark.parametrize(("name", "feature", "values"), UNFIT)
def test_a_dataset_from_elsewhere_is_read_again_or_refused(name, feature, values, sample, tmp_path):
    """Records of other types, a folder for a shard, and no rejects in their file are errors."""
    evil = forged(sample(name), tmp_path / "evil", **{feature: values})
    with suppress(RecordgenError):
        assert len(recordgen.check(str(evil), progress=None).rejects) > 3
    [shard, *_] = sorted(evil.glob("Split-*/*"))
    shard.unlink()
    shard.mkdir()
    with pytest.raises(RecordgenError, match=shard.name):
        list(recordgen.read(str(shard)))
    with pytest.raises(RecordgenError):
        recordgen.check(str(evil), progress=None)
    (evil / "rejects.jsonl").write_text("[1]\n")
    with pytest.raises(SourceError, match="rejects"):
        list(read_lines(str(evil / "rejects.jsonl"), Reject))
