"""Runs that are killed, and the runs after them, which give the bytes of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import fsspec
import pytest

import recordgen
from recordgen import cli, storage
from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.ordered import beside
from recordgen.core.rows.planned import PlannedRow
from recordgen.core.runs import commit, lease
from recordgen.core.runs.staging import STAGING
from recordgen.core.shards.task import ShardTask
from recordgen.errors import (
    OutputBusyError,
    OutputExistsError,
    RunnerError,
    SourceError,
    StorageError,
    TooManyRejectsError,
)
from tests.conftest import COMPONENTS, encoded, noise, tree_bytes
from tests.deaths import (
    DEATHS,
    PROCESSES,
    WHEN_ALL_IS_WRITTEN,
    Death,
    convert_and_die,
    write_source,
)
from tests.planned import planned
from tests.preloaded import WITH_BEAM
from tests.settings import conversion

pytestmark = pytest.mark.once

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
    return {name: data for name, data in tree_bytes(output).items() if not is_staged(name)}


def is_staged(name):
    return name.startswith(STAGING)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return an import file that no test changes."""
    return write_source(tmp_path_factory.mktemp("source"))[1]


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    """Return the files of an undisturbed run."""
    output = tmp_path_factory.mktemp("whole") / "out"
    convert(source, output)
    return tree_bytes(output)


@pytest.fixture(scope="module")
def whole_gzip(source, tmp_path_factory):
    """Return the files of an undisturbed run that compresses."""
    output = tmp_path_factory.mktemp("whole_gzip") / "out"
    convert(source, output, compression="gzip")
    return tree_bytes(output)


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


@pytest.mark.parametrize(("death", "finished"), DEATHS.values(), ids=DEATHS)
def test_a_run_killed_anywhere_is_finished_with_the_same_bytes(
    death, finished, source, left_by, whole, tmp_path
):
    for again in (resume, convert):
        output = tmp_path / again.__name__
        left_by(death, output)
        if finished:
            assert without_staging(output) == whole
        else:
            with pytest.raises(SourceError, match=str(output)):
                read_dataset(str(output))
        if finished and again is convert:
            with pytest.raises(OutputExistsError, match="resume=True"):
                again(source, output)
        else:
            result = again(source, output)
            assert tree_bytes(output) == whole
            assert result.unchanged == finished


@pytest.mark.parametrize("point", [point for point in DEATHS if "shard" not in point])
def test_killed_while_overwriting(point, source, old, whole, tmp_path):
    left = tmp_path / "left"
    shutil.copytree(old, left)
    before = tree_bytes(left)
    killed(DEATHS[point][0], source, left, overwrite=True)
    if (left / "dataset.json").exists():
        assert without_staging(left) in (before, whole)
    for again in (resume, convert):
        output = tmp_path / again.__name__
        shutil.copytree(left, output)
        again(source, output, overwrite=True)
        assert tree_bytes(output) == whole


# where the first run dies: the number of its shards that are kept
KEPT = {"while planning": None, "between shard and result": 3, "after five shards": 5}


@pytest.mark.parametrize(("point", "kept"), KEPT.items())
def test_finished_shards_are_kept(point, kept, source, left_by, tmp_path):
    output = tmp_path / "out"
    left_by(DEATHS[point][0], output)
    before = {path.stat().st_ino for path in output.glob(f"{STAGING}/*/Split-*/*")}
    result = resume(source, output)
    after = {path.stat().st_ino for path in output.glob("Split-*/*")}
    assert result.kept_shards == kept
    assert len(before & after) == (kept or 0) < shards_of(result)


@pytest.mark.parametrize(
    "death",
    [
        Death("recordgen.storage.move", 3, after=False),
        Death("recordgen.storage.move", 3, after=True),
        Death("recordgen.core.runs.resume.is_intact", 3, after=True),
    ],
)
@pytest.mark.parametrize("first", ["before the commit", "while moving"])
def test_killed_again_while_going_on(first, death, source, left_by, whole, tmp_path):
    output = tmp_path / "out"
    left_by(DEATHS[first][0], output)
    killed(death, source, output, resume=True)
    killed(death, source, output, resume=True)
    result = resume(source, output, beam_args=["--direct_num_workers=2"])
    assert result.kept_shards == shards_of(result)
    assert tree_bytes(output) == whole


def test_one_shard_at_a_time(source, whole, tmp_path):
    output = tmp_path / "out"
    killed(Death("recordgen.core.runs.staging.Staging.write_result", 1, after=True), source, output)
    for _ in range(4):
        killed(
            Death("recordgen.core.runs.resume.write_shard", 2, after=False),
            source,
            output,
            resume=True,
        )
    result = resume(source, output)
    assert result.kept_shards == 5
    assert tree_bytes(output) == whole


@pytest.mark.parametrize("again", [resume, convert])
@pytest.mark.parametrize("moving", [False, True])
def test_files_of_the_user_stay(again, moving, source, tmp_path):
    output = tmp_path / "out"
    convert(source, output)
    bad = tmp_path / "bad.csv"
    bad.write_text("TRAIN,nowhere.jpg,cat\n")
    killed(DEATHS["while moving" if moving else "before moving"][0], source, output, overwrite=True)
    (output / "labels.txt").write_text("mine\n")
    with pytest.raises(TooManyRejectsError):
        again(str(bad), output)
    assert (output / "labels.txt").exists() == (not moving or again is resume)


@pytest.mark.parametrize("again", [resume, convert])
@pytest.mark.parametrize("name", ["labels.txt", "report.html", "Split-train"])
def test_a_dead_run_excuses_nothing_that_it_cannot_have_left(
    again, name, source, left_by, tmp_path
):
    """A run writes nothing to the output before its commit, so such files are somebody else's."""
    output = tmp_path / "out"
    left_by(WHEN_ALL_IS_WRITTEN, output)
    (output / name).mkdir() if name.startswith("Split") else (output / name).write_text("mine")
    with pytest.raises(OutputExistsError, match=name):
        again(source, output)
    assert (output / name).exists()


@pytest.mark.parametrize("again", [resume, convert])
def test_after_an_append_that_died(again, make_images, make_csv, tmp_path):
    output, images = tmp_path / "out", make_images(40)
    first = make_csv((f"{path},cat" for path in images[:20]), "first.csv")
    second = make_csv((f"{path},cat" for path in images), "second.csv")
    convert(first, output)
    killed(DEATHS["while moving"][0], second, output, append=True)
    with pytest.raises(OutputExistsError, match=r"append=True .*overwrite=True .*resume=True"):
        again(second, output)
    assert again(second, output, append=True).dataset.examples == 40
    assert not (output / STAGING).exists()


def test_resume_without_an_interrupted_run_is_an_ordinary_run(source, whole, tmp_path):
    result = resume(source, tmp_path / "out")
    assert (result.kept_shards, result.unchanged) == (None, False)
    assert tree_bytes(tmp_path / "out") == whole


def test_starting_anew_says_what_it_costs(source, left_by, tmp_path, caplog):
    output = tmp_path / "out"
    left_by(DEATHS["after five shards"][0], output)
    assert convert(source, output).kept_shards is None
    assert "5 finished shards" in caplog.text
    assert "--resume" in caplog.text


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


def _touch_image(images, source):
    images[7].touch()


def _relabel(images, source):
    source.write_text(source.read_text().replace(f"{images[0]},cat", f"{images[0]},dog"))


def _name_split(images, source):
    """Name the split of a row, which was assigned before."""
    dataset = recordgen.plan(str(source), **SMALL)
    assert dataset.rows
    lines = source.read_text().splitlines()
    source.write_text("".join(f"{line}\n" for line in lines[1:]) + f"TRAIN,{lines[0]}\n")


def _add_row(images, source):
    extra = images[0].with_name("extra.jpg")
    extra.write_bytes(encoded(noise(seed=77), "JPEG"))
    with source.open("a") as file:
        file.write(f"{extra},zebra\n")


def _remove_row(images, source):
    source.write_text("".join(source.read_text().splitlines(keepends=True)[1:]))


def _shift_lines(images, source):
    source.write_text(f"\n\n{source.read_text()}")


def _new_first_label(images, source):
    """Add a label that sorts before all others, so that every label's number changes."""
    source.write_text(source.read_text().replace(f"{images[0]},cat", f"{images[0]},ant"))


CHANGES = {
    "nothing": Change(lambda images, source: None, 0),
    "lines": Change(_shift_lines, 0),
    "threads": Change(lambda images, source: {"threads": 1}, 0),
    "an image's time": Change(_touch_image, 1),
    "an image": Change(_replace_image, 1),
    "a label": Change(_relabel, 1),
    "labels' numbers": Change(_new_first_label, None),
    "a split's reason": Change(_name_split, None),
    "a row more": Change(_add_row, None),
    "a row less": Change(_remove_row, None),
    "the seed": Change(lambda images, source: {"seed": 5}, None),
    "image_size": Change(lambda images, source: {"image_size": "8max"}, None),
    "encode": Change(lambda images, source: {"encode": "raw"}, None),
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
    images, source, output = left
    more = {"max_reject_fraction": 0.5, **(change.make(images, Path(source)) or {})}
    expected = tmp_path / "expected"
    convert(source, expected, **more)
    result = resume(source, output, **more)
    assert tree_bytes(output) == tree_bytes(expected)
    assert result.kept_shards is not None
    if change.lost is not None:
        assert result.kept_shards == shards_of(result) - change.lost


def _staged_shard(output):
    return sorted(output.glob(f"{STAGING}/*/Split-train/*"))[2]


def _staged_result(output):
    return next(output.glob(f"{STAGING}/*/results/train-00002.json"))


def _flip_byte(output):
    shard = _staged_shard(output)
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)


def _other_shard(output):
    """Replace a shard with whole records of another one, and adapt the size in its result."""
    shards = sorted(output.glob(f"{STAGING}/*/Split-train/*"))
    shutil.copy(shards[1], shards[2])
    result = json.loads(_staged_result(output).read_text())
    result["shard"]["bytes"] = shards[1].stat().st_size
    _staged_result(output).write_text(json.dumps(result))


DAMAGES = {
    "truncated": lambda out: os.truncate(_staged_shard(out), 100),
    "longer": lambda out: os.truncate(_staged_shard(out), 100_000),
    "a flipped bit": _flip_byte,
    "another shard's records": _other_shard,
    "gone": lambda out: _staged_shard(out).unlink(),
    "empty result": lambda out: _staged_result(out).write_text(""),
    "no result": lambda out: _staged_result(out).unlink(),
}


@pytest.mark.parametrize(
    ("name", "compression"),
    [*((name, "none") for name in DAMAGES), ("truncated", "gzip"), ("a flipped bit", "gzip")],
)
def test_damaged_shards_are_written_again(
    name, compression, source, left_by, whole, whole_gzip, tmp_path
):
    output = tmp_path / "out"
    left_by(WHEN_ALL_IS_WRITTEN, output, compression=compression)
    DAMAGES[name](output)
    result = resume(source, output, compression=compression)
    assert tree_bytes(output) == (whole_gzip if compression == "gzip" else whole)
    assert result.kept_shards == shards_of(result) - 1


def test_rejects_of_kept_shards(changeable, tmp_path):
    """A kept shard's rejects have current line numbers; rejects due to storage are tried again."""
    images, source = changeable
    images[3].write_bytes(b"no image")
    images[20].write_bytes(b"no image either")
    output, expected = tmp_path / "out", tmp_path / "expected"
    more = {"max_reject_fraction": 0.5}
    killed(WHEN_ALL_IS_WRITTEN, source, output, **more)
    [left] = output.glob(f"{STAGING}/*")
    for path in left.glob("results/*.json"):
        text = path.read_text()
        if str(images[20]) in text:
            path.write_text(text.replace("not_an_image", "permission_denied"))
    _shift_lines(images, Path(source))
    convert(source, expected, **more)
    result = resume(source, output, **more)
    assert [(item.line, item.code) for item in result.rejects] == [
        (6, "not_an_image"),
        (23, "not_an_image"),
    ]
    assert result.kept_shards == shards_of(result) - 1
    assert tree_bytes(output) == tree_bytes(expected)


def test_too_many_rejects_can_be_allowed_later(changeable, tmp_path):
    images, source = changeable
    images[3].write_bytes(b"no image")
    output = tmp_path / "out"
    with pytest.raises(TooManyRejectsError):
        convert(source, output)
    assert os.listdir(output) == ["rejects.jsonl"]
    with pytest.raises(TooManyRejectsError):
        resume(source, output)
    result = resume(source, output, max_reject_fraction=0.5)
    assert result.kept_shards == shards_of(result)
    expected = convert(source, tmp_path / "expected", max_reject_fraction=0.5)
    assert result.dataset == expected.dataset
    assert tree_bytes(output) == tree_bytes(tmp_path / "expected")


def test_payloads_without_a_version_are_not_known():
    """If storage cannot distinguish an image from its replacement, a shard has no fingerprint."""
    row = PlannedRow(1, "a.csv", 1, "1.jpg", "cat", 5, "7", False)
    task = ShardTask("train", None, 0, 1, planned([row]))
    arguments = (Vocabulary("text", ("cat",)), conversion())
    assert len(task.fingerprint(*arguments)) == 64
    assert replace(task, rows=planned([row._replace(version="")])).fingerprint(*arguments) == ""


# --- finished datasets ---------------------------------------------------------------------------


def test_a_finished_dataset_is_left_alone(source, tmp_path):
    output = tmp_path / "out"
    first = convert(source, output)
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    result = resume(source, output)
    assert (result.unchanged, result.dataset) == (True, first.dataset)
    assert {path: path.stat().st_mtime_ns for path in output.rglob("*")} == before


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        (CHANGES["an image"], " splits, digest"),
        (CHANGES["a label"], " splits, .*digest"),
        (CHANGES["a row more"], " labels"),
        (CHANGES["the seed"], " seed, options;"),
    ],
)
def test_another_finished_dataset_is_refused(change, fields, changeable, tmp_path):
    images, source = changeable
    output = tmp_path / "out"
    convert(source, output, max_reject_fraction=0.5)
    before = tree_bytes(output)
    more = {"max_reject_fraction": 0.5, **(change.make(images, Path(source)) or {})}
    with pytest.raises(OutputExistsError, match=fields):
        resume(source, output, **more)
    assert tree_bytes(output) == before


def test_a_damaged_finished_dataset_is_refused(source, tmp_path):
    output = tmp_path / "out"
    convert(source, output)
    shard = next(output.glob("Split-train/*"))
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    with pytest.raises(OutputExistsError, match=" splits"):
        resume(source, output)


LIMITED = """
import resource, signal, sys
from recordgen.cli import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(main(sys.argv[2:]))
"""


def test_a_full_disk_leaves_the_old_dataset(source, tmp_path):
    output = tmp_path / "out"
    convert(source, output)
    before = tree_bytes(output)
    largest = len(before.pop("report.html"))
    room = max(map(len, before.values())) + 1
    assert room < largest
    # A limit on file sizes has the same effect on a write as a full disk.
    options = ("--shard-mb=0.005", "--seed=4", "--overwrite")
    limited = ("-c", LIMITED, str(room), "convert", source, str(output), *options)
    done = WITH_BEAM.run(*limited)
    assert (done.returncode, str(output) in done.stderr) == (1, True), done
    after = {name: data for name, data in tree_bytes(output).items() if STAGING not in name}
    assert after.pop("report.html")
    assert after == before
    assert convert(source, output, overwrite=True, resume=True).dataset.seed == SMALL["seed"]


# --- two runs at once ----------------------------------------------------------------------------


def test_two_runs_on_one_output(source, tmp_path):
    output = tmp_path / "out"
    with commit.open_run(str(output), overwrite=False):
        before = tree_bytes(output)
        for more in ({}, {"overwrite": True}, {"resume": True}):
            with pytest.raises(OutputBusyError, match=f"process {os.getpid()} on "):
                convert(source, output, **more)
        with pytest.raises(OutputBusyError, match=f"{output}: .*process {os.getpid()} "):
            recordgen.write([{"x": 1}], output)
        assert tree_bytes(output) == before
    convert(source, output)


def test_a_run_in_another_process(slow_source, tmp_path, caplog):
    output = tmp_path / "out"
    command = [sys.executable, "-m", "recordgen.cli", "convert", slow_source, str(output), "-q"]
    environment = {**os.environ, "PYTHONPATH": str(COMPONENTS)}
    process = subprocess.Popen([*command, "--shard-mb=1"], env=environment)
    while not any(output.glob(f"{STAGING}/*/run.json")):
        assert process.poll() is None
        time.sleep(0.01)
    with pytest.raises(OutputBusyError, match=f"process {process.pid} on {socket.gethostname()}"):
        recordgen.convert(slow_source, output)
    process.kill()
    while (Path("/proc") / str(process.pid) / "stat").read_text().split()[2] != "Z":
        time.sleep(0.01)
    # A zombie: its exit code has not been read yet.
    with commit.open_run(str(output), overwrite=False, resume=True):
        pass
    assert "heartbeat" not in caplog.text
    process.wait()


HERE = lease.this_process()


@pytest.mark.parametrize(
    ("holder", "dead"),
    [
        (HERE, False),
        (replace(HERE, started="1"), True),  # another process has the number now
        (replace(HERE, pid=2**22 + 1), True),
        (replace(HERE, pid=os.getppid(), started=lease.start_of(os.getppid()) or ""), False),
    ],
)
def test_processes_of_this_system_are_judged_at_once(holder, dead, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited"))
    path = str(tmp_path / "run.json")
    lease.write_holder(path, holder)
    assert lease.living_holder(path) == (None if dead else holder)


def test_a_process_that_holds_a_lease_is_seen_again_and_again(tmp_path):
    path = str(tmp_path / "run.json")
    seen, limit = set(), time.monotonic() + 60
    with lease.held(path, beat_seconds=0.01):
        while len(seen) < 3 and time.monotonic() < limit:
            seen.add(lease.read_holder(path))
    assert len(seen) == 3
    assert {replace(holder, seen=HERE.seen) for holder in seen} == {HERE}
    assert lease.read_holder(path) is None


@pytest.mark.parametrize(
    "elsewhere",
    [replace(HERE, host="elsewhere"), replace(HERE, system="other"), replace(HERE, system="")],
)
def test_processes_elsewhere_are_watched(elsewhere, tmp_path):
    """A process on another machine is judged by its heartbeat only: without one, it is dead.

    Its clock may be set back meanwhile.
    """
    path = str(tmp_path / "run.json")
    watched = partial(lease.living_holder, path, watch_seconds=0.5, poll_seconds=0.02)
    lease.write_holder(path, elsewhere)
    assert watched() is None
    clock = count(1_000_000, -1)

    def beat(done):
        while not done.wait(0.02):
            lease.write_holder(path, replace(elsewhere, seen=str(next(clock))))

    with beside(beat):
        found = watched()
    assert found is not None
    assert found.pid == elsewhere.pid
    assert watched() is None


def test_an_output_that_is_removed_meanwhile(source, tmp_path):
    output = tmp_path / "out"

    class Removing:
        """Removes the output while shards are written."""

        def planning(self): ...
        def finished(self): ...
        def writing(self, snapshot):
            shutil.rmtree(output, ignore_errors=True)

    with pytest.raises(RunnerError, match=f"^{output}: "):
        convert(source, output, progress=Removing())
    assert not (output / "dataset.json").exists()


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_was_taken_for_dead_does_not_commit(
    resume, source, whole, tmp_path, monkeypatch
):
    output = tmp_path / "out"

    class Stalled:
        """Takes over its own run, as another machine would."""

        def planning(self): ...
        def finished(self): ...
        def writing(self, snapshot):
            for path in output.glob(f"{STAGING}/*/run.json"):
                holder = lease.read_holder(str(path))
                if holder is not None:
                    lease.write_holder(str(path), replace(holder, host="elsewhere", pid=1))
                    # the next looks are 20 and 40 s later
                    monkeypatch.setattr(time, "monotonic", count(0, 20).__next__)
                    with commit.open_run(str(output), overwrite=False, resume=resume):
                        monkeypatch.undo()

    with pytest.raises(RunnerError):
        convert(source, output, progress=Stalled())
    assert not (output / "dataset.json").exists()
    convert(source, output)
    assert tree_bytes(output) == whole


# --- other storage, and the command --------------------------------------------------------------


@pytest.fixture
def bucket():
    fs = fsspec.filesystem("memory")
    yield "memory://bucket/out"
    fs.rm("/bucket", recursive=True)


@pytest.mark.parametrize("failing", [1, 4])
def test_a_run_is_resumed_after_storage_failed_while_moving(
    failing, source, bucket, tmp_path, monkeypatch
):
    """A run can be resumed after storage failed while it moved its shards."""
    convert(source, tmp_path / "expected")
    memory, moved = fsspec.filesystem("memory"), []
    move = memory.mv

    def fail(path, target):
        moved.append(path)
        if len(moved) == failing:
            raise OSError("503 Service Unavailable")
        move(path, target)

    monkeypatch.setattr(memory, "mv", fail)
    with pytest.raises(StorageError, match="503"):
        recordgen.convert(source, bucket, **SMALL)
    monkeypatch.undo()
    with pytest.raises(SourceError, match=bucket):
        read_dataset(bucket)
    result = recordgen.convert(source, bucket, resume=True, **SMALL)
    assert result.kept_shards == shards_of(result)
    assert recordgen.convert(source, bucket, resume=True, **SMALL).unchanged
    found = fsspec.filesystem("memory").find("/bucket/out")
    expected = tree_bytes(tmp_path / "expected")
    assert {path.removeprefix("/bucket/out/") for path in found} == set(expected)
    for name, data in expected.items():
        assert storage.read_bytes(f"{bucket}/{name}") == data


def test_the_command(source, tmp_path):
    """--resume reports the kept shards, as text and as JSON, or that the dataset is unchanged."""
    output = tmp_path / "out"
    command = ("-m", "recordgen.cli", "convert", source, str(output), "--shard-mb=0.005")
    killed(DEATHS["after five shards"][0], source, output, seed=0)
    done = WITH_BEAM.run(*command, "--resume")
    [line] = [line for line in done.stdout.splitlines() if line.startswith("Resumed")]
    dataset = read_dataset(str(output))
    shards = sum(len(split.shards) for split in dataset.splits.values())
    assert f" 5 of {shards} shards" in line
    again = json.loads(WITH_BEAM.run(*command, "--resume", "--json", "-q").stdout)
    assert (again["kept_shards"], again["unchanged"]) == (None, True)
    other = WITH_BEAM.run(*command, "--resume", "-q", "--seed=1")
    assert (other.returncode, other.stdout) == (2, "")
    assert "seed, options; " in other.stderr
    assert "--append or --overwrite" in other.stderr


def _run_command(arguments):
    sys.argv = ["recordgen", *arguments]
    cli.exit_main()


def started(arguments):
    """Start the command in a separate process, which need not load the package first."""
    process = PROCESSES.Process(target=_run_command, args=(arguments,))
    process.start()
    return process


@pytest.mark.parametrize("overwrite", [False, True])
def test_killed_at_random(overwrite, tmp_path):
    (tmp_path / "images").mkdir()
    for number in range(100):
        data = encoded(noise(seed=number), "JPEG", quality=90)
        (tmp_path / "images" / f"{number:03d}.jpg").write_bytes(data)
    source = tmp_path / "labels.csv"
    rows = (f"images/{number:03d}.jpg,{number % 7}\n" for number in range(100))
    source.write_text("".join(rows))
    recordgen.convert(source, tmp_path / "whole", shard_mb=0.003)
    output = tmp_path / "out"
    old = {}
    if overwrite:
        recordgen.convert(source, tmp_path / "old", shard_mb=0.02, seed=9)
        shutil.copytree(tmp_path / "old", output)
        old = tree_bytes(output)
    whole = tree_bytes(tmp_path / "whole")
    command = ["convert", str(source), str(output), "--shard-mb=0.003", "--resume", "-q"]
    command += ["--overwrite"] if overwrite else []
    shards = sum(name.startswith("Split-") for name in whole)
    moments = random.Random(7)
    for _ in range(6):
        seen = set(output.glob(f"{STAGING}/*"))
        finished = moments.randint(0, shards)
        process = started(command)
        while process.is_alive() and not (
            set(output.glob(f"{STAGING}/*")) - seen
            and len(list(output.glob(f"{STAGING}/*/results/*"))) >= finished
        ):
            time.sleep(0.001)
        process.kill()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        if (output / "dataset.json").exists():
            there = without_staging(output)
            assert there in (old, whole)
            if there == whole:
                shutil.rmtree(output)
                if overwrite:
                    shutil.copytree(tmp_path / "old", output)
    last = started(command)
    last.join(120)
    assert last.exitcode == 0
    assert tree_bytes(output) == whole
