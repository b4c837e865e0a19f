"""docs/tested.md: the versions in its table are the locked versions."""

import json
from pathlib import Path

import pytest

from tests.conftest import run_python

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


def test_a_run_leaves_what_it_tested(tmp_path, monkeypatch):
    """A separate pytest passes one test and writes the file."""
    told = tmp_path / "folder" / "leg.json"
    monkeypatch.setenv("RECORDGEN_TESTED", str(told))
    done = run_python(
        *(
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "tests/project/test_tested.py::test_always_passes",
        ),
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout
    seen = json.loads(told.read_text())
    assert (seen["passed"], seen["failed"], seen["skipped"]) == (1, 0, 0)
    assert seen["tensorflow"]


def test_always_passes():
    """The test that the test above runs."""
