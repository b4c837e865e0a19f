"""docs/tested.md: the versions in its table are the locked versions."""

import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

from tests.tested import pytest_terminal_summary

ROOT = Path(__file__).resolve().parents[2]


def test_a_run_leaves_what_it_tested(tmp_path, monkeypatch):
    told = tmp_path / "folder" / "leg.json"
    monkeypatch.setenv("RECORDGEN_TESTED", str(told))
    pytest_terminal_summary(SimpleNamespace(stats={"passed": ["a", "b"], "skipped": ["c"]}))
    seen = json.loads(told.read_text())
    assert (seen["passed"], seen["failed"], seen["skipped"]) == (2, 0, 1)
    assert seen["tensorflow"]


def test_a_machine_without_a_python_for_trainers(tmp_path):
    """The message names the versions, and how to say where one is."""
    scripts, programs = tmp_path / "scripts", tmp_path / "bin"
    scripts.mkdir()
    programs.mkdir()
    for name in ("trainers", "trainers.txt"):
        shutil.copy(ROOT / "scripts" / name, scripts)
    for name in ("bash", "cat", "cmp", "dirname", "env"):
        (programs / name).symlink_to(shutil.which(name))
    done = subprocess.run(
        [str(scripts / "trainers"), "--set-up"],
        env={"PATH": str(programs), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert all(word in done.stderr for word in ("3.11", "3.12", "3.13", "PYTHON="))
    assert not (tmp_path / ".venv-trainers").exists()
