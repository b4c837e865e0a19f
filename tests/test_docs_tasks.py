"""The pages of the tasks say what is so."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
import tensorflow as tf

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs/tasks").glob("*.md"))


@pytest.mark.parametrize("page", [page for page in PAGES if ">>>" in page.read_text()], ids=str)
def test_what_the_page_shows_happens(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each statement on a page gives what stands below it, from the repository's top folder."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    # TensorFlow's own seed where none is set: trainings in the same process have set one.
    tf.random.set_seed(87654321)
    found = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert not found.failed
