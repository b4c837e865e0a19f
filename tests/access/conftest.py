from functools import cache

import pytest

import recordgen
from tests.golden import NEEDED, ROOT, SAMPLES


@pytest.fixture(scope="session")
def converted(tmp_path_factory):
    """Return a function that converts a sample once, and returns the output."""

    @cache
    def convert(name):
        out = tmp_path_factory.mktemp(name) / "out"
        recordgen.convert(str(ROOT / "examples" / SAMPLES[name]), out, **NEEDED.get(name, {}))
        return out

    return convert
