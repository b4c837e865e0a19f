import pytest

from tests.exports.conftest import sample as sample  # a fixture


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Keep the user's cache folder out of the tests; return the folder that they use."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "recordgen"
