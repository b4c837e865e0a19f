import functools

import pytest

import recordgen
from tests.golden import NEEDED, ROOT, SAMPLES


@pytest.fixture(scope="session")
def converted(tmp_path_factory):
    """Return a function that converts a sample once, and returns the output."""

    @functools.cache
    def convert(name):
        out = tmp_path_factory.mktemp(name) / "out"
        recordgen.convert(str(ROOT / "examples" / SAMPLES[name]), out, **NEEDED.get(name, {}))
        return out

    return convert


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Keep the user's cache folder out of the tests; return the folder that they use."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "recordgen"
