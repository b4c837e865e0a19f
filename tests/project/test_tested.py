"""docs/tested.md: the versions in its table are the locked versions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

from tests.conftest import load_script, run_python

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
LEGS = ("tfx-1.21", "tfx-1.16", "no-tfx")


@pytest.fixture(scope="module")
def tested() -> ModuleType:
    return load_script("tested")


def rows_of(tested: ModuleType) -> dict[str, dict[str, object]]:
    """Return the table as the legs' JSON would have it."""
    lines = tested.table_in((ROOT / "docs/tested.md").read_text()).splitlines()[2:]
    legs: dict[str, dict[str, object]] = {}
    for line in lines:
        leg, *versions, outcome = line.strip("| ").split(" | ")
        counts = {word: count for count, word in re.findall(r"(\d[\d,]*) ([a-z]+)", outcome)}
        legs[leg.strip("`")] = {
            **dict(
                zip(
                    tested.COLUMNS.values(),
                    (None if version == "–" else version for version in versions),
                    strict=True,
                )
            ),
            "passed": int(counts["passed"].replace(",", "")),
            "failed": int(counts["failed"]),
            "error": int(counts.get("errors", 0)),
            "skipped": int(counts.get("skipped", 0)),
        }
    return legs


def test_the_table_is_what_the_script_renders(tested: ModuleType) -> None:
    table = tested.table_in((ROOT / "docs/tested.md").read_text())
    assert tested.render(rows_of(tested)) == table


def test_every_leg_has_its_row(tested: ModuleType) -> None:
    """Failures are not checked: this test would then fail the run that fixes them."""
    assert tuple(rows_of(tested)) == LEGS


@pytest.mark.parametrize("leg", LEGS)
def test_versions_are_those_of_the_lock(leg: str, tested: ModuleType) -> None:
    seen = rows_of(tested)[leg]
    where = {"python_full_version": str(seen["python"]), "sys_platform": "linux"}
    where["python_version"] = ".".join(str(seen["python"]).split(".")[:2])
    locked = {}
    lock = (ROOT / "locks" / f"{leg}.txt").read_text()
    for line in re.findall(r"^[a-z].+(?= \\$)", lock, flags=re.MULTILINE):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate(where):
            locked[requirement.name] = str(requirement.specifier).removeprefix("==")
    names = set(tested.COLUMNS.values()) - {"system", "glibc", "python"}
    assert {name: seen[name] for name in names} == {name: locked.get(name) for name in names}


def test_a_run_leaves_what_it_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_always_passes() -> None:
    """The test that the test above runs."""
