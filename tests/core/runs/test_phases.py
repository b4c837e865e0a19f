"""Phases after the shards: they are measured, and reported while they work."""

import threading
import time

import recordgen
from recordgen.conversion.examining import JoinKeys
from recordgen.core.flow import running
from recordgen.core.progress import CHECKS, COMMIT, SHARDS, Phase
from recordgen.core.runs import staging
from recordgen.core.runs.phases import Phases


class Recorder:
    """A Progress that keeps the phases it is told."""

    def __init__(self):
        self.told, self.calls, self.is_told = [], [], threading.Event()

    def planning(self): ...
    def writing(self, snapshot): ...

    def phase(self, phase):
        self.told.append(phase)
        self.calls.append("phase")
        self.is_told.set()

    def finished(self):
        self.calls.append("finished")


def test_a_long_phase_is_told_with_its_step():
    recorder = Recorder()
    with Phases(recorder, poll_seconds=0.001) as measured, measured.during(CHECKS):
        measured.step("NEAR_LEAK", 2, 7)
        recorder.is_told.clear()  # one that began before the step
        assert recorder.is_told.wait(10)
        recorder.is_told.clear()
        assert recorder.is_told.wait(10)
    assert recorder.told[-1]._replace(seconds=0) == Phase(CHECKS, "NEAR_LEAK", 2, 7, 0)
    assert recorder.calls[-1] == "finished"
    assert list(measured.seconds) == [CHECKS]


def test_the_shards_have_a_progress_of_their_own():
    recorder = Recorder()
    with Phases(recorder, poll_seconds=0.001) as measured, measured.during(SHARDS):
        assert not recorder.is_told.wait(0.05)
    assert recorder.calls == []
    assert list(measured.seconds) == [SHARDS]


def test_checks_tell_how_many_buckets_are_joined(make_images, make_csv, monkeypatch):
    monkeypatch.setattr(staging, "LOCAL_HEARTBEAT_SECONDS", 0)
    monkeypatch.setattr(running, "_LOCAL_POLL_SECONDS", 0.01)

    def slowly(step, element, work=JoinKeys.process):
        yield from work(step, element)
        time.sleep(0.1)

    monkeypatch.setattr(JoinKeys, "process", slowly)
    source, recorder = make_csv(f"TRAIN,{path},cat" for path in make_images(2)), Recorder()
    recordgen.check(source, progress=recorder)
    told = {(each.step, each.done, each.total) for each in recorder.told}
    assert {("joining buckets", 0, 2), ("joining buckets", 1, 2)} <= told


def test_results_have_the_seconds_of_each_phase(make_images, make_csv, tmp_path):
    source = make_csv(f"TRAIN,{path},cat" for path in make_images(2))
    found = recordgen.convert(source, tmp_path / "out", check="header", progress=None)
    assert list(found.phases) == [SHARDS, CHECKS, COMMIT]
    assert sum(found.phases.values()) <= found.seconds
    assert list(recordgen.check(source, progress=None).phases) == [SHARDS, CHECKS]
