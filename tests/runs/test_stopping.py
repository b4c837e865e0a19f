"""SIGTERM and Ctrl-C, in processes that load only the handler."""

from __future__ import annotations

import time

import pytest

from tests.conftest import run_python

pytestmark = pytest.mark.once

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
        os.kill(os.getpid(), signal.SIGTERM)  # a second signal during the stop
        time.sleep({holds})
"""

NO_CTRL_C = "signal.signal(signal.SIGINT, signal.SIG_IGN)"


@pytest.mark.parametrize(
    ("before", "by", "seconds", "holds", "stdout", "code"),
    [
        ("", "SIGTERM", 60, 0, "interrupted by SIGTERM\n", 0),
        (NO_CTRL_C, "SIGTERM", 60, 0, "interrupted by SIGTERM\n", 0),
        ("", "SIGTERM", 0.1, 60, "interrupted by SIGTERM\n", 143),
        ("", "SIGINT", 0.1, 60, "interrupted by SIGINT\n", 130),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "SIGTERM", 60, 0, "", 0),
        ("signal.signal(signal.SIGTERM, lambda *_: print('mine'))", "SIGTERM", 60, 0, "mine\n", 0),
    ],
    ids=["first", "no-ctrl-c", "held", "held-at-ctrl-c", "ignored", "handled"],
)
def test_sigterm_ends_as_ctrl_c_does(
    before: str, by: str, seconds: float, holds: float, stdout: str, code: int
) -> None:
    """SIGTERM interrupts once, even if Ctrl-C is ignored; a stop that hangs is ended."""
    started = time.monotonic()
    done = run_python("-c", STOPPED.format(before=before, by=by, seconds=seconds, holds=holds))
    assert (done.stdout, done.returncode) == (stdout, code), done.stderr
    assert time.monotonic() - started < 30
