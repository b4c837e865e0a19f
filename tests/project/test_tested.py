"""What a run of the tests leaves, and the environment of the trainers' tests."""

import json
from types import SimpleNamespace

from tests.project.machines import FakeMachine
from tests.tested import pytest_terminal_summary


def test_a_run_leaves_what_it_tested(tmp_path, monkeypatch):
    """In the file that the environment names."""
    told = tmp_path / "folder" / "leg.json"
    monkeypatch.setenv("RECORDGEN_TESTED", str(told))
    pytest_terminal_summary(SimpleNamespace(stats={"passed": ["a", "b"], "skipped": ["c"]}))
    seen = json.loads(told.read_text())
    assert (seen["passed"], seen["failed"], seen["skipped"]) == (2, 0, 1)
    assert seen["tensorflow"]


def test_a_machine_without_a_python_for_trainers(tmp_path):
    """The message names the versions, and how to say where one is."""
    copied = ("scripts/trainers", "scripts/trainers.txt")
    machine = FakeMachine(tmp_path, "bash cat cmp dirname env", copied)
    done = machine.run("trainers", "--set-up")
    assert done.returncode != 0
    assert all(word in done.stderr for word in ("3.11", "3.12", "3.13", "PYTHON="))
    assert not (machine.repository / ".venv-trainers").exists()
