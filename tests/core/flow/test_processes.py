"""Steps that run in several processes of one machine."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest

from recordgen.core.flow import graph
from recordgen.core.flow.graph import processes_for
from recordgen.core.flow.runner import OUT_OF_MEMORY, LocalRunner, Step, in_processes
from recordgen.core.ordered import has_python, threads_here
from recordgen.core.runs.staging import Staging
from recordgen.errors import RunnerError, StorageError
from tests.conftest import error_of, python_environment, run_python, write_noise
from tests.settings import conversion


class Told(Step):
    """Does what its elements say, in a process that says its number and its share of threads."""

    processes = 2

    def __init__(self, folder):
        self.staging = Staging(str(folder))

    def process(self, element):
        if element == "fail":
            raise StorageError("gs://b/1.jpg: forbidden")
        if element == "fill the memory":
            raise MemoryError
        if element == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if element == "exit":
            os._exit(7)
        if element == "log":
            logging.getLogger("recordgen.told").info("%s said it", "a step")
            print("a library prints")
        yield element, os.getpid(), threads_here(6)


def _told(folder, *elements):
    return list(in_processes(Told(folder), elements, 2))


def test_outputs_keep_their_order_and_processes_share_the_threads(tmp_path):
    """Two processes divide elements and threads, and outputs come in the order of elements."""
    elements = [str(number) for number in range(40)]
    said, processes, threads = zip(*_told(tmp_path, *elements), strict=True)
    assert list(said) == elements
    assert len(set(processes) - {os.getpid()}) == 2
    assert set(threads) == {3}
    assert threads_here(6) == 6


# element, error, fact
ERRORS = [
    ("fail", StorageError, "gs://b/1.jpg: forbidden"),
    ("fill the memory", RunnerError, OUT_OF_MEMORY),
    ("die", MemoryError, "killed"),
    ("exit", RunnerError, "7"),
]


@pytest.mark.parametrize(("element", "error", "fact"), ERRORS)
def test_an_error_keeps_its_type(tmp_path, element, error, fact):
    """Errors of a step, too little memory, and the death of its process reach the launcher."""
    assert fact in str(error_of(error, _told, tmp_path, "1", element, *"234567"))


def test_logs_reach_the_launcher_and_prints_harm_nothing(tmp_path, caplog):
    """Log records of a step appear in the launcher; prints of libraries mix with no result."""
    with caplog.at_level(logging.INFO, "recordgen"):
        assert len(_told(tmp_path, "log", "1")) == 2
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("recordgen.told", "a step said it")
    ]


def test_few_elements_stay_in_this_process(tmp_path, monkeypatch):
    """Processes start only for enough elements, and only where Python can be started."""

    def processes(count):
        seen = set()

        class Last(Step):
            def process(self, element):
                seen.add(element[1])
                yield from ()

        runner = LocalRunner()
        elements = [str(number) for number in range(count)]
        runner.start("Start", elements).through("Told", Told(tmp_path)).through("Last", Last())
        runner.run(Staging(str(tmp_path)))
        return seen

    assert processes(5) == {os.getpid()}
    assert os.getpid() not in processes(6)
    monkeypatch.setattr(sys, "executable", "")
    assert processes(6) == {os.getpid()}


@pytest.mark.parametrize(
    ("threads", "memory_gb", "processes"),
    [(2, 64, 1), (7, 64, 1), (8, 64, 2), (64, 64, 16), (64, 4, 8), (64, 0.25, 1)],
)
def test_processes_fit_into_the_memory(threads, memory_gb, processes):
    """Threads and memory both bound the number of processes."""
    assert processes_for(threads, int(memory_gb * 1e9)) == processes


# --- conversions ---------------------------------------------------------------------------------


_SCRIPT = """
import sys
import recordgen

labels, out, threads = sys.argv[1:]
result = recordgen.convert(labels, out, threads=int(threads), shard_mb=0.03, max_reject_fraction=1)
print(len(result.dataset.splits["train"].shards), len(result.rejects), result.dataset.digest)
"""


def test_a_script_without_a_guard_converts_in_processes(tmp_path):
    """A program without ``if __name__`` gets the same dataset from several processes."""
    write_noise(tmp_path, range(24), 60, 60)  # 270 kB
    rows = [f"TRAIN,{number}.png,{'ab'[number % 2]}" for number in range(24)]
    (tmp_path / "labels.csv").write_text("\n".join([*rows, "TRAIN,none.png,a", ""]))
    (tmp_path / "script.py").write_text(_SCRIPT)
    said, script = [], [str(tmp_path / name) for name in ("script.py", "labels.csv")]
    for threads in ("1", "8"):
        done = run_python(*script, str(tmp_path / threads), threads)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
    assert said[0] == said[1]
    assert int(said[0][0]) >= 6
    assert said[0][1] == "1"


def test_processes_end_with_a_launcher_that_is_killed(tmp_path):
    """No process of a step is left."""
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from recordgen.core.flow.runner import in_processes\n"
        "from tests.core.flow.test_processes import Told\n"
        "for each in in_processes(Told(Path(sys.argv[1])), iter(lambda: 'x', None), 2):\n"
        "    print(each[1], flush=True)\n"
        "    time.sleep(0.01)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=python_environment(),
    ) as launcher:
        assert launcher.stdout is not None
        processes = {int(launcher.stdout.readline()) for _ in range(10)}
        launcher.kill()
    until = time.monotonic() + 30
    while any(map(_is_running, processes)):
        assert time.monotonic() < until, processes
        time.sleep(0.05)


def _is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except OSError:
        return False


# the program that runs, whether it is frozen, whether it is a Python that can be started again
PROGRAMS = [
    ("python3", False, True),
    ("python3", True, False),
    ("uwsgi", False, False),
    ("", False, False),
]


@pytest.mark.parametrize(("name", "frozen", "is_python"), PROGRAMS)
def test_what_is_no_python_is_not_started(name, frozen, is_python, tmp_path, monkeypatch):
    """uWSGI, frozen programs and programs that embed Python do all work themselves."""
    program = tmp_path / name
    if name:
        program.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(program) if name else "")
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    assert has_python() == is_python


def test_files_that_only_one_process_has_are_read_by_it(monkeypatch):
    """Files in the memory of this process are not there in others."""
    monkeypatch.setattr(graph, "default_threads", lambda: 64)
    memory = fsspec.filesystem("memory")
    # Other tests may have left files and file systems.
    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.store", {})
    monkeypatch.setattr(sys.modules["fsspec.registry"], "registry", {})
    flow = SimpleNamespace(through=lambda _, step: step.processes)
    processes = graph.compare_shards(flow, conversion(), "", Staging(""))
    memory.pipe("/private/1.txt", b"1")
    assert graph.compare_shards(flow, conversion(), "", Staging("")) == 1 < processes
