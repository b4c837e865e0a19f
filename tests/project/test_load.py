"""Many concurrent conversions, very many shards, clocks that jump, and too little memory."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest
import simplejpeg

import recordgen
from recordgen.beam import beam_runner
from recordgen.beam.beam_runner import memory_kills
from recordgen.errors import RunnerError
from recordgen.tasks.images import task as image_task
from tests.conftest import tree_bytes
from tests.deaths import write_source

_BEAM = ["--direct_num_workers=1"]
_SMALL = {"shard_mb": 0.001}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return an import file with ten images."""
    return write_source(tmp_path_factory.mktemp("source"), 10)[1]


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    """Return the files of an undisturbed conversion."""
    output = tmp_path_factory.mktemp("whole") / "out"
    recordgen.convert(source, output, **_SMALL)
    return tree_bytes(output)


def test_ten_conversions_at_once_do_not_affect_each_other(source, whole, tmp_path):
    """Each has the bytes of one alone."""
    outputs = [tmp_path / f"{number}" for number in range(10)]
    with ThreadPoolExecutor(len(outputs)) as pool:
        list(pool.map(lambda output: recordgen.convert(source, output, **_SMALL), outputs))
    assert all(tree_bytes(output) == whole for output in outputs)


def test_clocks_that_jump_change_no_byte(source, whole, tmp_path, monkeypatch):
    """Neither forward nor backward."""
    real, jumps = time.time, cycle([0, -4e8, 4e8, -60, 60])
    monkeypatch.setattr(time, "time", lambda: real() + next(jumps))
    recordgen.convert(source, tmp_path / "out", **_SMALL)
    assert tree_bytes(tmp_path / "out") == whole


class _Starving:
    """A function that runs out of memory in its ninth call."""

    def __init__(self, function):
        self._function, self._calls = function, iter(range(100))

    def __call__(self, *args, **more):
        if next(self._calls) == 8:
            raise MemoryError
        return self._function(*args, **more)


def test_a_row_whose_decoder_runs_out_of_memory_is_a_reject(source, out, monkeypatch):
    """A later run with more memory adds it."""
    monkeypatch.setattr(simplejpeg, "decode_jpeg", _Starving(simplejpeg.decode_jpeg))
    result = recordgen.convert(source, out, threads=1, max_reject_fraction=0.2, **_SMALL)
    assert result.dataset.rows.examples == 9
    [line] = (out / "rejects.jsonl").read_text().splitlines()
    assert json.loads(line)["code"] == "out_of_memory"
    monkeypatch.undo()
    assert recordgen.convert(source, out, append=True, **_SMALL).dataset.rows.examples == 10


def test_a_run_out_of_memory_names_options_and_can_be_resumed(source, whole, out, monkeypatch):
    """Then it has the bytes of a whole one."""
    monkeypatch.setattr(image_task, "serialize_example", _Starving(image_task.serialize_example))
    with pytest.raises(RunnerError, match="limit"):
        recordgen.convert(source, out, threads=1, **_SMALL)
    assert not (out / "dataset.json").exists()
    monkeypatch.undo()
    recordgen.convert(source, out, resume=True, **_SMALL)
    assert tree_bytes(out) == whole


def test_a_kill_by_the_control_group_is_reported(source, tmp_path, monkeypatch):
    """Of both versions of control groups."""
    assert memory_kills(str(tmp_path)) == 0
    for version, name in enumerate(("memory/memory.oom_control", "memory.events"), 1):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"under_oom 0\noom_kill {version}\n")
        assert memory_kills(str(tmp_path)) == version

    def crash(*_, **__):
        raise SystemError

    monkeypatch.setattr("recordgen.core.flow.steps.cut", crash)
    for counts, words in (((0, 0), "Beam's runner failed"), ((0, 1), "out of memory")):
        monkeypatch.setattr(beam_runner, "memory_kills", iter(counts).__next__)
        with pytest.raises(RunnerError, match=words):
            recordgen.convert(source, tmp_path / words.split()[0], beam_args=_BEAM, **_SMALL)


def test_an_interrupt_waits_for_no_further_image(source, tmp_path, monkeypatch):
    """Not even for the other images of the batch that a thread has begun."""
    calls = []

    def slow(*_, **__):
        calls.append(time.monotonic())
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)  # the main thread receives the signal
        raise ValueError

    monkeypatch.setattr(simplejpeg, "decode_jpeg", slow)
    with pytest.raises(KeyboardInterrupt):
        recordgen.convert(source, tmp_path / "out", threads=1)
    assert len(calls) <= 2
