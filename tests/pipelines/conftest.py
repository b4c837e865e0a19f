import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import COMPONENTS
from tests.preloaded import WITH_TFX

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def command():
    """Run ``python -m pipelines.<name>`` from the repository, as users do."""
    path = os.pathsep.join([str(COMPONENTS), str(ROOT)])

    def run(name, *arguments):
        return subprocess.run(
            [sys.executable, "-m", f"pipelines.{name}", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=600,
        )

    return run


@pytest.fixture(scope="session")
def fast_command():
    """Run a command as ``command`` does, in a process that has loaded the program already."""

    def run(name, *arguments):
        return WITH_TFX.run("-m", f"pipelines.{name}", *map(str, arguments))

    return run
