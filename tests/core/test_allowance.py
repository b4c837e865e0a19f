"""What reading a source may take: beyond it, a run ends with one error, and limits are lifted."""

import resource
import signal
import subprocess
import sys
import threading
import time

import pytest

import recordgen
from recordgen.core import allowance
from recordgen.errors import SourceError
from recordgen.formats.line_files import CsvFile

LIMITS = (resource.RLIMIT_DATA, resource.RLIMIT_CPU)


def state():
    """Return the limits of this process, its timer, and the handler of the timer's signal."""
    timer = signal.getitimer(signal.ITIMER_PROF)
    return [*map(resource.getrlimit, LIMITS), timer, signal.getsignal(signal.SIGPROF)]


@pytest.fixture(autouse=True)
def same_limits():
    """Whatever happens, the process has its old limits afterwards."""
    before = state()
    yield
    assert state() == before


def take_memory():
    return bytearray(2 << 30)


def take_time():
    while True:
        time.sleep(0)


@pytest.mark.parametrize("take", [take_memory, take_time])
def test_a_block_that_takes_more_raises_an_error(take, monkeypatch):
    """Memory beyond the allowance cannot be had, and time beyond it interrupts Python."""
    monkeypatch.setattr(allowance, "SECONDS", 0.2)
    with pytest.raises(SourceError), allowance.allowed():
        take()


@pytest.mark.parametrize("take", [take_memory, take_time])
def test_a_run_whose_reader_takes_more_leaves_nothing_finished(take, tmp_path, monkeypatch):
    """The reader of a format that never ends costs the run, which leaves no dataset.json."""
    (tmp_path / "a.csv").write_text("TRAIN,1.png,cat\n" * 50_000)
    read = CsvFile.rows

    def rows(self, file, *arguments):
        if file.lines is None:  # not the sample of detection, but the run itself
            take()
        yield from read(self, file, *arguments)

    monkeypatch.setattr(CsvFile, "rows", rows)
    monkeypatch.setattr(allowance, "SECONDS", 0.5)
    monkeypatch.setattr(allowance, "SECONDS_PER_BYTE", 0)
    with pytest.raises(SourceError):
        recordgen.convert(str(tmp_path / "a.csv"), tmp_path / "out", progress=None)
    assert not (tmp_path / "out/dataset.json").exists()


def test_memory_grows_with_the_bytes_that_are_read():
    """Half a gigabyte of files allows what a small one does not."""
    with allowance.allowed():
        allowance.grow(0, 500_000_000)
        assert len(take_memory()) == 2 << 30


def test_the_kernel_counts_ticks(monkeypatch):
    """They may be more than the exact time: a limit by that ended long-lived processes at once."""
    ticks = time.clock_gettime(allowance.CLOCK_OF_TICKS)
    assert ticks == pytest.approx(time.process_time(), rel=0.5, abs=1)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: ticks + 1_000)
    with allowance.allowed():
        assert resource.getrlimit(resource.RLIMIT_CPU)[0] > ticks + 1_000


def test_the_time_of_processes_counts():
    """What a decoder takes in its own process, a source takes."""

    def left():
        return signal.getitimer(signal.ITIMER_PROF)[0]

    with allowance.allowed():
        before, own = left(), time.process_time()
        subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
        allowance.count_processes()
        own = time.process_time() - own
        assert before - left() > own + 0.05


def test_another_thread_has_no_allowance():
    """Limits hold for a whole process, so a worker's thread sets none."""
    sizes = []

    def work():
        with allowance.allowed():
            sizes.append(len(take_memory()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert sizes == [2 << 30]


def test_the_last_part_ends_the_allowance():
    """Limits grow with the source, and end behind it, so that shards are written without them."""
    parts = allowance.while_reading([1, 2], 10_000_000)
    before = state()
    assert next(parts) == 1
    assert signal.getitimer(signal.ITIMER_PROF)[0] > 60
    assert list(parts) == [2]
    assert state() == before


def test_an_interrupt_at_the_end_leaves_no_limits(monkeypatch):
    """The timer may end while limits are lifted: nobody would lift them later."""
    set_timer = signal.setitimer

    def late(*arguments):
        signal.raise_signal(signal.SIGPROF)
        return set_timer(*arguments)

    with allowance.allowed():
        monkeypatch.setattr(signal, "setitimer", late)
    monkeypatch.undo()


def test_a_reader_that_another_thread_collects_lifts_the_limits():
    """Nobody finishes it. Only the main thread may set handlers: that stays, without a timer."""
    before, handler = [*map(resource.getrlimit, LIMITS)], signal.getsignal(signal.SIGPROF)
    parts = allowance.while_reading(iter([1, 2]), 10)
    next(parts)
    thread = threading.Thread(target=parts.close)
    thread.start()
    thread.join()
    limits, timer = [*map(resource.getrlimit, LIMITS)], signal.getitimer(signal.ITIMER_PROF)
    signal.signal(signal.SIGPROF, handler)
    for kind, found in zip(LIMITS, before, strict=True):
        resource.setrlimit(kind, found)
    assert (limits, timer) == (before, (0.0, 0.0))
