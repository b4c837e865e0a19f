"""Phases after the shards: they are measured, and reported while they work."""

import threading

import pytest

import recordgen
from recordgen.core.progress import CHECKS, COMMIT, SHARDS, Phases


class Recorder:
    """A Progress that keeps the phases it is told."""

    def __init__(self):
        self.told, self.is_told = [], threading.Event()

    def show(self, snapshot):
        self.told.append(snapshot.phase)
        self.is_told.set()

    def finished(self):
        self.told.append("finished")


@pytest.mark.parametrize(("phase", "is_told"), [(CHECKS, True), (SHARDS, False)])
def test_a_long_phase_is_told(phase, is_told):
    """It is reported while it works, and measured; the shards have a progress of their own."""
    recorder = Recorder()
    with Phases(recorder, poll_seconds=0.001) as measured, measured.during(phase):
        assert recorder.is_told.wait(60 if is_told else 0.05) == is_told
    assert list(dict.fromkeys(recorder.told)) == [phase, "finished"] * is_told
    assert list(measured.seconds) == [phase]


def test_results_have_the_seconds_of_each_phase(make_images, make_csv, tmp_path):
    """A conversion has a phase for its commit, a check has none."""
    source = make_csv(f"TRAIN,{path},cat" for path in make_images(2))
    found = recordgen.convert(source, tmp_path / "out", check="header", progress=None)
    assert list(found.phases) == [SHARDS, CHECKS, COMMIT]
    assert sum(found.phases.values()) <= found.seconds
    assert list(recordgen.check(source, progress=None).phases) == [SHARDS, CHECKS]
