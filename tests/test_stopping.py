"""SIGTERM, in processes that load nothing but its handler."""

from __future__ import annotations

import time

import pytest

from tests.conftest import run_python

pytestmark = pytest.mark.once

STOPPED = """
import os, signal, time
from recordgen.console import stopping
{before}
stopping._STOP_SECONDS = {seconds}
stopping.stop_on_sigterm()
try:
    os.kill(os.getpid(), signal.SIGTERM)
except KeyboardInterrupt:
    print("interrupted by", stopping.interrupted_by().name, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)  # again, while it stops
    time.sleep({holds})
"""


@pytest.mark.parametrize(
    ("before", "seconds", "holds", "stdout", "code"),
    [
        ("", 60, 0, "interrupted by SIGTERM\n", 0),
        ("signal.signal(signal.SIGINT, signal.SIG_IGN)", 60, 0, "interrupted by SIGTERM\n", 0),
        ("", 0.1, 60, "interrupted by SIGTERM\n", 143),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", 60, 0, "", 0),
        ("signal.signal(signal.SIGTERM, lambda *_: print('mine'))", 60, 0, "mine\n", 0),
    ],
    ids=["first", "no-ctrl-c", "held", "ignored", "handled"],
)
def test_sigterm_ends_as_ctrl_c_does(
    before: str, seconds: float, holds: float, stdout: str, code: int
) -> None:
    """Once, also where Ctrl-C is ignored; and what holds the end is cut off."""
    started = time.monotonic()
    done = run_python("-c", STOPPED.format(before=before, seconds=seconds, holds=holds))
    assert (done.stdout, done.returncode) == (stdout, code), done.stderr
    assert time.monotonic() - started < 30
