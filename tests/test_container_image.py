"""The image that `make image` builds, run by the engine of this machine."""

from __future__ import annotations

import pytest

from recordgen.version import __version__
from tests.containers import Engine

pytestmark = pytest.mark.container


def test_it_is_this_version(engine: Engine) -> None:
    done = engine.run(command=["--version"])
    assert (done.returncode, done.stdout) == (0, f"recordgen {__version__}\n"), done.stderr
    print(engine.docker_host, engine.image)
