"""Runs that are killed, and the runs after them, which give the bytes of an undisturbed run."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import fsspec
import pytest

import recordgen
from recordgen import errors, storage
from recordgen.core import shards
from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.ordered import beside
from recordgen.core.rows.columns import columns_of
from recordgen.core.rows.row import PlannedRow
from recordgen.core.runs import commit, lease
from recordgen.core.runs.staging import STAGING
from recordgen.core.shards import PlannedRows, ShardTask
from recordgen.tasks import ImageClassification
from tests.conftest import encoded, flip_bit, noise, python_environment, tree_bytes, while_writing
from tests.deaths import DEATHS, WHEN_ALL_IS_WRITTEN, Death, convert_and_die, write_source
from tests.planned import planned
from tests.settings import conversion

# Forty images make at least ten shards.
SMALL = {"shard_mb": 0.005, "seed": 3}


def killed(death, source, output, **settings):
    """Convert in a process that is killed during the run."""
    convert_and_die(death, source, output, **{**SMALL, **settings})


def convert(source, output, **settings):
    return recordgen.convert(source, output, **{**SMALL, **settings})


def resume(source, output, **settings):
    return convert(source, output, resume=True, **settings)


def shards_of(result):
    return sum(len(split.shards) for split in result.dataset.splits.values())


def without_staging(output):
    files = tree_bytes(output).items()
    return {name: data for name, data in files if not name.startswith(STAGING)}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return an import file that no test changes."""
    return write_source(tmp_path_factory.mktemp("source"))[1]


@pytest.fixture(scope="module")
def finished(source, tmp_path_factory):
    """Return the output of an undisturbed run, which no test changes."""
    output = tmp_path_factory.mktemp("whole") / "out"
    convert(source, output)
    return output


@pytest.fixture(scope="module")
def whole(finished):
    """Return the files of an undisturbed run."""
    return tree_bytes(finished)


@pytest.fixture(scope="module")
def old(source, tmp_path_factory):
    """Return the output of an earlier run with other settings, which no test changes."""
    output = tmp_path_factory.mktemp("old") / "out"
    convert(source, output, seed=4, shard_mb=0.004)
    return output


@pytest.fixture(scope="module")
def left_by(source, tmp_path_factory):
    """Return a function that copies the output of a killed run; each run dies only once."""
    made = {}

    def copy(death, output, **settings):
        key = (death, *settings.items())
        if key not in made:
            made[key] = tmp_path_factory.mktemp("left") / "out"
            killed(death, source, made[key], **settings)
        shutil.copytree(made[key], output)

    return copy


@pytest.fixture
def changeable(tmp_path):
    """Return images and an import file that the test may change."""
    return write_source(tmp_path)


# where the first run dies: the number of its shards that are kept
KEPT = {"while planning": None, "between shard and result": 3, "after five shards": 5}
# where it has moved nothing, either: starting anew is tried after five shards
UNMOVED = ["while planning", "within the fourth shard", "between shard and result"]
UNMOVED += ["before the commit"]


@pytest.mark.parametrize("point", DEATHS)
def test_a_run_killed_anywhere_is_finished(point, source, left_by, whole, tmp_path, caplog):
    """It gives the same bytes, resumed or started anew; finished shards are kept."""
    death = DEATHS[point]
    for again in (resume,) if point in UNMOVED else (resume, convert):
        output = tmp_path / again.__name__
        left_by(death, output)
        caplog.clear()
        if death.is_finished:
            assert without_staging(output) == whole
        else:
            with pytest.raises(errors.SourceError, match=str(output)):
                read_dataset(str(output))
        if death.is_finished and again is convert:
            with pytest.raises(errors.OutputExistsError, match="resume=True"):
                again(source, output)
            continue
        before = {path.stat().st_ino for path in output.glob(f"{STAGING}/*/Split-*/*")}
        result = again(source, output)
        assert tree_bytes(output) == whole
        assert result.unchanged == death.is_finished
        if point in KEPT and again is resume:
            after = {path.stat().st_ino for path in output.glob("Split-*/*")}
            assert result.kept_shards == KEPT[point]
            assert len(before & after) == (KEPT[point] or 0) < shards_of(result)
        elif point == "after five shards":
            assert result.kept_shards is None
            assert "5 finished shards" in caplog.text  # starting anew says what it costs
            assert "--resume" in caplog.text


@pytest.mark.parametrize("point", [point for point in DEATHS if "shard" not in point])
def test_killed_while_overwriting(point, source, old, whole, tmp_path):
    """The old dataset or the new one is there, never a mixture."""
    left = tmp_path / "left"
    shutil.copytree(old, left)
    before = tree_bytes(left)
    killed(DEATHS[point], source, left, overwrite=True)
    if (left / "dataset.json").exists():
        assert without_staging(left) in (before, whole)
    for again in (resume, convert) if point == "while moving" else (resume,):
        output = tmp_path / again.__name__
        shutil.copytree(left, output)
        again(source, output, overwrite=True)
        assert tree_bytes(output) == whole


# where the first run dies, and where the next two do; the shards that they leave (None: all)
TWICE = [
    ("before the commit", Death("recordgen.storage.move", 3, after=False), None),
    ("while moving", Death("recordgen.storage.move", 3, after=True), None),
    ("while moving", Death("recordgen.core.runs.commit.is_intact", 3, after=True), None),
    ("between shard and result", Death("recordgen.core.runs.commit.write_shard", 2, False), 5),
]


@pytest.mark.parametrize(("first", "death", "kept"), TWICE)
def test_killed_again_while_going_on(first, death, kept, source, left_by, whole, out):
    """Each run keeps what all runs before it have finished."""
    left_by(DEATHS[first], out)
    killed(death, source, out, resume=True)
    killed(death, source, out, resume=True)
    result = resume(source, out, beam_args=["--direct_num_workers=2"])
    assert result.kept_shards == (kept or shards_of(result))
    assert tree_bytes(out) == whole


def test_files_of_the_user_stay(source, finished, tmp_path):
    """A resumed run that fails leaves what a person put where an older dataset was."""
    left, bad = tmp_path / "left", tmp_path / "bad.csv"
    shutil.copytree(finished, left)
    bad.write_text("TRAIN,nowhere.jpg,cat\n")
    killed(DEATHS["while moving"], source, left, overwrite=True)
    (left / "labels.txt").write_text("mine\n")
    for again in (resume, convert):
        output = tmp_path / again.__name__
        shutil.copytree(left, output)
        with pytest.raises(errors.TooManyRejectsError):
            again(str(bad), output)
        assert (output / "labels.txt").exists() == (again is resume)


@pytest.mark.parametrize("name", ["labels.txt", "report.html", "Split-train"])
def test_a_dead_run_excuses_nothing_that_it_cannot_have_left(name, source, left_by, out):
    """A run writes nothing to the output before its commit, so such files are somebody else's."""
    left_by(WHEN_ALL_IS_WRITTEN, out)
    (out / name).mkdir() if name.startswith("Split") else (out / name).write_text("mine")
    for again in (resume, convert):
        with pytest.raises(errors.OutputExistsError, match=name):
            again(source, out)
        assert (out / name).exists()


def test_after_an_append_that_died(make_images, make_csv, tmp_path):
    """Another kind of run is refused; the same one finishes it."""
    left, images = tmp_path / "left", make_images(40)
    first = make_csv((f"{path},cat" for path in images[:20]), "first.csv")
    second = make_csv((f"{path},cat" for path in images), "second.csv")
    convert(first, left)
    killed(DEATHS["while moving"], second, left, append=True)
    for again in (resume, convert):
        output = tmp_path / again.__name__
        shutil.copytree(left, output)
        with pytest.raises(errors.OutputExistsError, match=r"append=True .*resume=True"):
            again(second, output)
        assert again(second, output, append=True).dataset.examples == 40
        assert not (output / STAGING).exists()


def test_resume_without_an_interrupted_run_is_an_ordinary_run(source, whole, tmp_path):
    """It keeps nothing and says so."""
    result = resume(source, tmp_path / "out")
    assert (result.kept_shards, result.unchanged) == (None, False)
    assert tree_bytes(tmp_path / "out") == whole


# --- changes between the runs ---------------------------------------------------------------------


class Change(NamedTuple):
    """A change before the run is resumed, and the number of shards to write again (None: any)."""

    make: Callable[[list[Path], Path], Mapping[str, Any] | None]
    lost: int | None


def _replace_image(images, source):
    """Replace an image with another one of the same size in bytes."""
    old = images[7].read_bytes()
    new = encoded(noise(seed=99), "JPEG", quality=90)
    images[7].write_bytes((new + bytes(len(old)))[: len(old)] if len(new) < len(old) else old[::-1])


def _relabel(label):
    """Give the first image another label."""

    def relabel(images, source):
        source.write_text(source.read_text().replace(f"{images[0]},cat", f"{images[0]},{label}"))

    return relabel


def _name_split(images, source):
    """Name the split of a row, which was assigned before."""
    assert recordgen.plan(str(source), **SMALL).rows
    lines = source.read_text().splitlines()
    source.write_text("".join(f"{line}\n" for line in lines[1:]) + f"TRAIN,{lines[0]}\n")


def _add_row(images, source):
    extra = images[0].with_name("extra.jpg")
    extra.write_bytes(encoded(noise(seed=77), "JPEG"))
    with source.open("a") as file:
        file.write(f"{extra},zebra\n")


def _shift_lines(images, source):
    source.write_text(f"\n\n{source.read_text()}")


CHANGES = {
    "lines": Change(_shift_lines, 0),
    "threads": Change(lambda images, source: {"threads": 1}, 0),
    "an image's time": Change(lambda images, source: images[7].touch(), 1),
    "an image": Change(_replace_image, 1),
    "a label": Change(_relabel("dog"), 1),
    "a new label": Change(_relabel("zebra"), 1),  # behind all others
    "labels' numbers": Change(_relabel("ant"), None),  # "ant" sorts before all others
    "a split's reason": Change(_name_split, None),
    "a row more": Change(_add_row, None),
    "the seed": Change(lambda images, source: {"seed": 5}, None),
    "image_size": Change(lambda images, source: {"image_size": "8max"}, None),
    "compression": Change(lambda images, source: {"compression": "gzip"}, None),
    "shard_by": Change(lambda images, source: {"shard_by": "label"}, None),
}


@pytest.fixture(scope="module")
def left_once(tmp_path_factory):
    """Return a folder with images and an import file, and the output of a killed run of it."""
    folder = tmp_path_factory.mktemp("once")
    (folder / "source").mkdir()
    _, source = write_source(folder / "source")
    killed(WHEN_ALL_IS_WRITTEN, source, folder / "out", max_reject_fraction=0.5)
    return folder / "source", folder / "out"


@pytest.fixture
def left(left_once, tmp_path):
    """Return images and an import file that the test may change, and their killed run.

    They are restored afterwards with their times, which tell whether an image is the same.
    """
    folder, output = left_once
    shutil.copytree(folder, tmp_path / "kept")
    shutil.copytree(output, tmp_path / "out")
    yield sorted(folder.glob("*.jpg")), str(folder / "labels.csv"), tmp_path / "out"
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "kept", folder)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_meanwhile(change, left, tmp_path):
    """Shards that a change does not affect are kept."""
    images, source, output = left
    more = {"max_reject_fraction": 0.5, **(change.make(images, Path(source)) or {})}
    expected = tmp_path / "expected"
    convert(source, expected, **more)
    result = resume(source, output, **more)
    assert tree_bytes(output) == tree_bytes(expected)
    assert result.kept_shards is not None
    if change.lost is not None:
        assert result.kept_shards == shards_of(result) - change.lost


def _other_shard(shard, result):
    """Replace the first shard with whole records of the next, and adapt the size in its result."""
    other = sorted(shard.parent.iterdir())[1]
    shutil.copy(other, shard)
    line, rest = result.read_bytes().split(b"\n", 1)
    said = json.loads(line)
    said["shard"]["bytes"] = other.stat().st_size
    result.write_bytes(json.dumps(said).encode() + b"\n" + rest)


# Damages of the first shards or of their results, one each.
DAMAGES = [
    _other_shard,
    lambda shard, result: os.truncate(shard, 100),
    lambda shard, result: flip_bit(shard),
    lambda shard, result: os.truncate(shard, 100_000),
    lambda shard, result: shard.unlink(),
    lambda shard, result: result.write_text(""),
    lambda shard, result: result.unlink(),
]


@pytest.mark.parametrize(
    ("compression", "damages"),
    [("none", DAMAGES[:4]), ("none", DAMAGES[4:]), ("gzip", DAMAGES[:3])],
)
def test_damaged_shards_are_not_kept(compression, damages, source, left_by, whole, tmp_path, out):
    """A damaged shard, or one whose result is damaged, is written again."""
    left_by(WHEN_ALL_IS_WRITTEN, out, compression=compression)
    [left] = out.glob(f"{STAGING}/*")
    shards = sorted(left.glob("Split-train/*"))
    for number, damage in enumerate(damages):
        damage(shards[number], left / f"results/train-{number:05d}.result")
    result = resume(source, out, compression=compression)
    assert result.kept_shards == shards_of(result) - len(damages)
    if compression == "gzip":
        convert(source, tmp_path / "gzip", compression="gzip")
        whole = tree_bytes(tmp_path / "gzip")
    assert tree_bytes(out) == whole


def test_rejects_of_kept_shards(changeable, tmp_path):
    """A kept shard's rejects have current line numbers; rejects due to storage are tried again."""
    images, source = changeable
    images[3].write_bytes(b"no image")
    images[20].write_bytes(b"no image either")
    output, expected = tmp_path / "out", tmp_path / "expected"
    more = {"max_reject_fraction": 0.5}
    killed(WHEN_ALL_IS_WRITTEN, source, output, **more)
    [left] = output.glob(f"{STAGING}/*")
    results = [*left.glob("results/*.result")]  # also of a shard whose rows are all rejects
    for path in results:
        data = path.read_bytes()
        if str(images[20]).encode() in data:
            path.write_bytes(data.replace(b"not_an_image", b"permission_denied"))
    _shift_lines(images, Path(source))
    convert(source, expected, **more)
    result = resume(source, output, **more)
    codes = [(item.line, item.code) for item in result.rejects]
    assert codes == [(6, "not_an_image"), (23, "not_an_image")]
    assert result.kept_shards == len(results) - 1
    assert tree_bytes(output) == tree_bytes(expected)


def test_too_many_rejects_can_be_allowed_later(changeable, tmp_path, out):
    """All shards of the failed run are kept."""
    images, source = changeable
    images[3].write_bytes(b"no image")
    with pytest.raises(errors.TooManyRejectsError, match=r"1 of 40 .*1\.00%.*not_an_image 1"):
        convert(source, out)
    assert os.listdir(out) == ["rejects.jsonl"]
    with pytest.raises(errors.TooManyRejectsError):
        resume(source, out)
    result = resume(source, out, max_reject_fraction=0.5)
    assert result.kept_shards == shards_of(result)
    expected = convert(source, tmp_path / "expected", max_reject_fraction=0.5)
    assert result.dataset == expected.dataset
    assert tree_bytes(out) == tree_bytes(tmp_path / "expected")


@pytest.mark.parametrize("limit", ["_PART_ROWS", "_PART_BYTES"])
def test_a_fingerprint_does_not_depend_on_the_parts_of_a_shard(limit, monkeypatch):
    """Nor do the annotations, which are read part by part."""
    rows = [PlannedRow(n, "a.csv", n, f"{n}.jpg", f"{n}", 5, "7", False) for n in range(3)]
    parts = [columns_of(PlannedRow, [row]) for row in rows]
    arguments = (Vocabulary("text", ("0", "1", "2")), ImageClassification())
    identity = PlannedRows(parts).identity(*arguments)
    monkeypatch.setattr(shards, limit, 1)
    apart = PlannedRows(parts)
    assert [texts.to_pylist() for texts in apart.annotations()] == [["0"], ["1"], ["2"]]
    assert apart.identity(*arguments) == identity != PlannedRows(parts[:2]).identity(*arguments)


def test_payloads_without_a_version_are_not_known():
    """If storage cannot distinguish an image from its replacement, a shard has no fingerprint."""
    row = PlannedRow(1, "a.csv", 1, "1.jpg", "cat", 5, "7", False)
    task = ShardTask("train", None, 0, 1, planned([row]))
    arguments = (Vocabulary("text", ("cat",)), conversion())
    assert len(task.fingerprint(*arguments)) == 64
    assert replace(task, rows=planned([row._replace(version="")])).fingerprint(*arguments) == ""


# --- finished datasets ---------------------------------------------------------------------------


def test_a_finished_dataset_is_left_alone(source, finished):
    """Not even a time changes."""
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    result = resume(source, finished)
    assert (result.unchanged, result.dataset) == (True, read_dataset(str(finished)))
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before


# changes, one after the other, and what the error names
REFUSED = {
    "the seed": r"\(seed is 3 there and 5 here\)",
    "an image": "splits, digest",
    "a label": "splits, .*digest",
    "a row more": "labels",
}


def test_another_finished_dataset_is_refused(changeable, out):
    """The error names what differs."""
    images, source = changeable
    convert(source, out, max_reject_fraction=0.5)
    before = tree_bytes(out)
    for change, fields in REFUSED.items():
        more = CHANGES[change].make(images, Path(source)) or {}
        with pytest.raises(errors.OutputExistsError, match=fields):
            resume(source, out, max_reject_fraction=0.5, **more)
        assert tree_bytes(out) == before


def test_a_damaged_finished_dataset_is_refused(source, finished, out):
    """Resume reads the shards of a finished dataset."""
    shutil.copytree(finished, out)
    flip_bit(next(out.glob("Split-train/*")))
    with pytest.raises(errors.OutputExistsError, match="splits"):
        resume(source, out)


# --- two runs at once ----------------------------------------------------------------------------


def test_two_runs_on_one_output(source, out):
    """The second one is refused, and touches nothing."""
    with commit.open_run(str(out), overwrite=False):
        before = tree_bytes(out)
        for more in ({}, {"overwrite": True}, {"resume": True}):
            with pytest.raises(errors.OutputBusyError, match=f"process {os.getpid()} on "):
                convert(source, out, **more)
        with pytest.raises(errors.OutputBusyError, match=f"{out}: .*process {os.getpid()} "):
            recordgen.write([{"x": 1}], out)
        assert tree_bytes(out) == before
    convert(source, out)


def just_before(function, path, acts):
    """Return a function that takes and calls the ``acts`` left before ``function`` gets a path."""

    def call(given, *rest, **more):
        while str(given) == path and acts:
            acts.pop()()
        return function(given, *rest, **more)

    return call


def test_a_run_that_begins_while_another_ends(out, monkeypatch):
    """It keeps its lease, and begins even if the folder of all runs is removed at that moment."""
    root = str(out / STAGING)
    with ExitStack() as second:
        begins = [partial(second.enter_context, commit.open_run(str(out), overwrite=False))]
        with commit.open_run(str(out), overwrite=False):
            monkeypatch.setattr(os, "rmdir", just_before(os.rmdir, root, begins))
        assert len(list(out.glob(f"{STAGING}/*/run.json"))) == 1
    assert not (out / STAGING).exists()
    os.mkdir(root)
    making = just_before(os.mkdir, f"{root}/third", [partial(os.rmdir, root)])
    monkeypatch.setattr(os, "mkdir", making)
    storage.write_text(f"{root}/third/run.json", "")
    assert os.listdir(root) == ["third"]


def test_a_run_in_another_process(slow_source, out, caplog):
    """It is refused until that process is dead."""
    command = [sys.executable, "-m", "recordgen.cli", "convert", slow_source, str(out), "-q"]
    process = subprocess.Popen([*command, "--shard-mb=1"], env=python_environment())
    while not any(out.glob(f"{STAGING}/*/run.json")):
        assert process.poll() is None
        time.sleep(0.01)
    holder = f"process {process.pid} on {socket.gethostname()}"
    with pytest.raises(errors.OutputBusyError, match=holder):
        recordgen.convert(slow_source, out)
    process.kill()
    while (Path("/proc") / str(process.pid) / "stat").read_text().split()[2] != "Z":
        time.sleep(0.01)
    # A zombie: its exit code has not been read yet.
    with commit.open_run(str(out), overwrite=False, resume=True):
        pass
    assert "heartbeat" not in caplog.text
    process.wait()


HERE = lease.this_process()


# holder, dead
HOLDERS = [
    (HERE, False),
    (replace(HERE, started="1"), True),  # another process has the number now
    (replace(HERE, pid=2**22 + 1), True),
    (replace(HERE, pid=os.getppid(), started=lease.start_of(os.getppid()) or ""), False),
]


@pytest.mark.parametrize(("holder", "dead"), HOLDERS)
def test_processes_of_this_system_are_judged_at_once(holder, dead, tmp_path, monkeypatch):
    """By number and start, without waiting."""
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited"))
    path = str(tmp_path / "run.json")
    lease.write_holder(path, holder)
    assert lease.living_holder(path) == (None if dead else holder)


def test_a_process_that_holds_a_lease_is_seen_again_and_again(tmp_path):
    """It renews its lease, and removes it."""
    path = str(tmp_path / "run.json")
    seen, limit = set(), time.monotonic() + 60
    with lease.held(path, beat_seconds=0.01):
        while len(seen) < 3 and time.monotonic() < limit:
            seen.add(lease.read_holder(path))
    assert len(seen) == 3
    assert {replace(holder, seen=HERE.seen) for holder in seen} == {HERE}
    assert not os.path.exists(path)


@pytest.mark.parametrize("other", [{"host": "elsewhere"}, {"system": "other"}, {"system": ""}])
def test_processes_elsewhere_are_watched(other, tmp_path):
    """A process on another machine is judged by its heartbeat only: without one, it is dead.

    Its clock may be set back meanwhile.
    """
    path, elsewhere = str(tmp_path / "run.json"), replace(HERE, **other)
    watched = partial(lease.living_holder, path, poll_seconds=0.02)
    lease.write_holder(path, elsewhere)
    assert watched(watch_seconds=0.5) is None
    clock = count(1_000_000, -1)

    def beat(done):
        while not done.wait(0.02):
            lease.write_holder(path, replace(elsewhere, seen=str(next(clock))))

    with beside(beat):
        found = watched(watch_seconds=60)  # until the first beat
    assert found is not None
    assert found.pid == elsewhere.pid
    assert watched(watch_seconds=0.5) is None


def test_an_output_that_is_removed_meanwhile(source, out):
    """The run fails and leaves no dataset."""

    removing = while_writing(partial(shutil.rmtree, out, ignore_errors=True))
    with pytest.raises(errors.RunnerError, match=f"^{out}: "):
        convert(source, out, progress=removing)
    assert not (out / "dataset.json").exists()


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_was_taken_for_dead_does_not_commit(resume, source, whole, out, monkeypatch):
    """Nor does it disturb the next run."""

    def take_over():
        """Take over the own run, as another machine would."""
        for path in out.glob(f"{STAGING}/*/run.json"):
            holder = lease.read_holder(str(path))
            if holder is not None:
                lease.write_holder(str(path), replace(holder, host="elsewhere", pid=1))
                # the next looks are 20 and 40 s later
                monkeypatch.setattr(time, "monotonic", count(0, 20).__next__)
                with commit.open_run(str(out), overwrite=False, resume=resume):
                    monkeypatch.undo()

    with pytest.raises(errors.RunnerError):
        convert(source, out, progress=while_writing(take_over))
    assert not (out / "dataset.json").exists()
    convert(source, out)
    assert tree_bytes(out) == whole


# --- other storage, and the command --------------------------------------------------------------


@pytest.fixture
def bucket():
    fs = fsspec.filesystem("memory")
    yield "memory://bucket/out"
    fs.rm("/bucket", recursive=True)


def test_a_run_is_resumed_after_storage_failed_while_moving(source, bucket, whole, monkeypatch):
    """An object store is finished like a folder."""
    memory, moved = fsspec.filesystem("memory"), []
    move = memory.mv

    def fail(path, target):
        moved.append(path)
        if len(moved) == 4:
            raise OSError("503 Service Unavailable")
        move(path, target)

    monkeypatch.setattr(memory, "mv", fail)
    with pytest.raises(errors.StorageError, match="503"):
        recordgen.convert(source, bucket, **SMALL)
    monkeypatch.undo()
    with pytest.raises(errors.SourceError, match=bucket):
        read_dataset(bucket)
    result = recordgen.convert(source, bucket, resume=True, **SMALL)
    assert result.kept_shards == shards_of(result)
    assert recordgen.convert(source, bucket, resume=True, **SMALL).unchanged
    found = fsspec.filesystem("memory").find("/bucket/out")
    assert {path.removeprefix("/bucket/out/") for path in found} == set(whole)
    for name, data in whole.items():
        assert storage.read_bytes(f"{bucket}/{name}") == data


def test_the_command(source, left_by, out, stdout_of, json_of, caplog):
    """--resume reports the kept shards, as text and as JSON, or that the dataset is unchanged."""
    command = ["convert", source, str(out), "--shard-mb=0.005", "--seed=3", "--resume"]
    left_by(DEATHS["after five shards"], out)
    lines = stdout_of(*command).splitlines()
    [line] = [line for line in lines if line.startswith("Resumed")]
    dataset = read_dataset(str(out))
    shards = sum(len(split.shards) for split in dataset.splits.values())
    assert f" 5 of {shards} shards" in line
    again = json_of(*command, "-q")
    assert (again["kept_shards"], again["unchanged"]) == (None, True)
    assert stdout_of(*command, "-q", "--seed=1", code=2) == ""
    assert "(seed is 3 there and 1 here)" in caplog.text
    assert "--append or --overwrite" in caplog.text
