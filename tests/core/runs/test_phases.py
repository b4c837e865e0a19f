"""Phases after the shards: they are measured, and reported while they work."""

import threading

import recordgen
from recordgen.core.progress import CHECKS, COMMIT, SHARDS, Phases


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


def test_a_long_phase_is_told():
    """A phase is reported while it works, and its seconds are kept."""
    recorder = Recorder()
    with Phases(recorder, poll_seconds=0.001) as measured, measured.during(CHECKS):
        assert recorder.is_told.wait(60)
    assert {phase.name for phase in recorder.told} == {CHECKS}
    assert recorder.calls[-1] == "finished"
    assert list(measured.seconds) == [CHECKS]


def test_the_shards_have_a_progress_of_their_own():
    """The phase of the shards is measured and not reported."""
    recorder = Recorder()
    with Phases(recorder, poll_seconds=0.001) as measured, measured.during(SHARDS):
        assert not recorder.is_told.wait(0.05)
    assert recorder.calls == []
    assert list(measured.seconds) == [SHARDS]


def test_results_have_the_seconds_of_each_phase(make_images, make_csv, tmp_path):
    """A conversion has a phase for its commit, a check has none."""
    source = make_csv(f"TRAIN,{path},cat" for path in make_images(2))
    found = recordgen.convert(source, tmp_path / "out", check="header", progress=None)
    assert list(found.phases) == [SHARDS, CHECKS, COMMIT]
    assert sum(found.phases.values()) <= found.seconds
    assert list(recordgen.check(source, progress=None).phases) == [SHARDS, CHECKS]
