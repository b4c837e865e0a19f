"""The process of a command may die: its parent says how, and ends with it."""

import signal
import subprocess
import sys

import pytest

from tests.conftest import python_environment, run_python

RUN = "from recordgen.console.supervising import supervised; import os, signal, time"
DIES = f"{RUN}; supervised(lambda: os.kill(os.getpid(), {{}}), lambda: '; a hint')"
WAITS = f"{RUN}; supervised(lambda: (print(os.getpid(), flush=True), {{}}, os._exit(7)), str)"


@pytest.mark.parametrize(
    ("by", "code", "word"),
    [("SIGSEGV", 1, "SIGSEGV"), ("SIGXCPU", 1, "SIGXCPU"), ("SIGKILL", 137, "memory")],
)
def test_a_command_that_dies_leaves_a_sentence(by, code, word):
    """A command killed by a signal ends with one sentence and its code."""
    done = run_python("-c", DIES.format(int(signal.Signals[by])))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (code, "", 1)
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_the_code_of_a_command_is_that_of_its_process():
    """Exit codes pass through, even if SIGCHLD is ignored."""
    assert run_python("-c", WAITS.format("0")).returncode == 7
    ignored = f"import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); {WAITS.format(0)}"
    assert run_python("-c", ignored).returncode == 7
    assert run_python("-m", "recordgen", "--version").returncode == 0
    assert run_python("-m", "recordgen", "--wrong").returncode == 2


def test_threads_and_arrow_share_one_heap():
    """What one of them frees, the others use."""
    pool = "print(__import__('pyarrow').default_memory_pool().backend_name, flush=True)"
    thread = "threading.Thread(target=bytes, args=(9999,)).start()"
    heaps = "c.malloc_info(0, ctypes.c_void_p.in_dll(c, 'stdout')), c.fflush(None)"
    code = WAITS.format(f"{pool}, {thread}, {heaps}")
    done = run_python("-c", f"import ctypes, threading; c = ctypes.CDLL(None); {code}")
    assert (done.stdout.split()[1], done.stdout.count("<heap nr=")) == ("system", 1)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_goes_on_when_the_command_is_ended(by):
    """Killed, its process is killed; other signals reach it."""
    code = WAITS.format("time.sleep(100)")
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": python_environment()}
    command = subprocess.Popen([sys.executable, "-c", code], **how)
    assert command.stdout is not None
    assert int(command.stdout.readline()) != command.pid
    command.send_signal(by)
    command.communicate(timeout=60)  # both have closed their output
    assert command.returncode == (-by if by == signal.SIGKILL else 128 + by)
