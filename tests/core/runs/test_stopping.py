"""SIGTERM and Ctrl-C, in processes that load only the handler."""

import pytest

from tests.conftest import run_python

STOPPED = """
import os, signal, time
from recordgen.console import stopping
{before}
stopping.STOP_SECONDS[signal.{by}] = {seconds}
with stopping.stopping():
    try:
        os.kill(os.getpid(), signal.{by})
    except KeyboardInterrupt:
        print("interrupted by", stopping.stopped_by().name, flush=True)
        os.kill(os.getpid(), signal.{by})  # a second signal during the stop
        time.sleep({holds})
"""

NO_CTRL_C = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
HANDLED = "signal.signal(signal.SIGTERM, lambda *_: print('mine'))"


# name: before, by, seconds, holds, stdout, code
SIGNALS = {
    "first": ("", "SIGTERM", 60, 0, "interrupted by SIGTERM\n", 0),
    "no-ctrl-c": (NO_CTRL_C, "SIGTERM", 60, 0, "interrupted by SIGTERM\n", 0),
    "held": ("", "SIGTERM", 1, 60, "interrupted by SIGTERM\n", 143),  # on a loaded machine, too
    "held-at-ctrl-c": ("", "SIGINT", 1, 60, "interrupted by SIGINT\n", 130),
    "ignored": ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "SIGTERM", 60, 0, "", 0),
    "handled": (HANDLED, "SIGTERM", 60, 0, "mine\n", 0),
}


@pytest.mark.parametrize(
    ("before", "by", "seconds", "holds", "stdout", "code"), SIGNALS.values(), ids=SIGNALS
)
def test_sigterm_ends_as_ctrl_c_does(before, by, seconds, holds, stdout, code):
    """The first signal interrupts; a block that goes on is ended, with the signal's code."""
    done = run_python("-c", STOPPED.format(before=before, by=by, seconds=seconds, holds=holds))
    assert (done.stdout, done.returncode) == (stdout, code), done.stderr


# A module that the command imports first, in which Ctrl-C raises nothing.
LOADING = """
import contextlib, os, signal
with contextlib.suppress(BaseException):
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
"""


def test_ctrl_c_while_the_command_loads(tmp_path):
    """The exit code is that of an interrupt, and nothing is printed."""
    (tmp_path / "argparse.py").write_text(LOADING)
    done = run_python("-m", "recordgen", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


SWALLOWED = """
import os, signal, sys, traceback
import recordgen
from recordgen import cli

event, begun, *names = sys.argv[1:]
signalled = []

def at(*now):
    if now == (event, begun) and not signalled:
        signalled.append(now)
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            traceback.print_exc()  # as modules in C do while they import others

sys.addaudithook(lambda name, args: at(name, args[0]) if args else None)
sys.exit(cli.main(["convert", *names]))
"""


@pytest.mark.parametrize("event", ["import", "open"])
def test_a_swallowed_signal_stops_before_the_commit(event, tmp_path):
    """A library that catches the signal does not let the run finish; an import ends at once."""
    (tmp_path / "a.csv").write_text("TRAIN,one text,a\nTRAIN,two texts,b\n")
    names = [str(tmp_path / "a.csv"), str(tmp_path / "out")]
    begun = {"import": "recordgen.formats.source", "open": names[0]}[event]
    done = run_python("-c", SWALLOWED, event, begun, *names)
    assert (done.returncode, "Traceback" in done.stderr) == (143, event == "open"), done
    assert not (tmp_path / "out/dataset.json").exists()
