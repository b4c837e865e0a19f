"""A check that another package installs is a check like Recordgen's own."""

import json
import re
from pathlib import Path

import pytest

import recordgen
from recordgen.checks.check import EACH, KEYED, MOST_TOGETHER, Check, check_declaration
from recordgen.core.dataset.lint import ERROR, WARNING, count_level
from recordgen.errors import LintError, UsageError
from recordgen.options import ConvertOptions
from recordgen.registry import CHECKS, OWN_CHECKS
from tests.conftest import encoded, noise, write_file

CODE = "SHARED_PATIENT"


@pytest.mark.parametrize("code", OWN_CHECKS)
def test_own_checks_are_complete(code):
    """Each path can be imported, its class is complete, and none examines any number together."""
    check_declaration(code, CHECKS[code])
    assert CHECKS[code].scope != KEYED or CHECKS[code].most_together == MOST_TOGETHER


@pytest.fixture
def scans(tmp_path):
    """Five scans of two patients, one of whom is in two splits."""
    lines = []
    for number, (split, patient) in enumerate(
        [("TEST", "p1"), ("TRAIN", "p1"), ("TRAIN", "p2"), ("TEST", "p1"), ("TRAIN", "p2")]
    ):
        write_file(tmp_path / patient / f"{number}.png", encoded(noise(40, 30, number)))
        lines.append(f"{split},{patient}/{number}.png,cat\n")
    (tmp_path / "scans.csv").write_text("".join(lines))
    return tmp_path / "scans.csv"


def test_an_installed_check(shared_patients, scans, out, stdout_of, capsys, monkeypatch):
    """convert, lint.jsonl, dataset.json, the report, check and inspect have its findings.

    It examines a patient as a whole, whatever the limit of Recordgen's own groups.
    """
    monkeypatch.setattr("recordgen.conversion.examination.MOST_TOGETHER", 1)
    assert list(CHECKS) == [*OWN_CHECKS, CODE]
    assert recordgen.convert(scans, out).dataset.lint[CODE] == 2
    lines = [json.loads(line) for line in (out / "lint.jsonl").read_text().splitlines()]
    found = [line for line in lines if line["code"] == CODE]
    lines = [(item["line"], item["level"], item["other_line"]) for item in found]
    assert lines == [(1, "error", 2), (4, "error", 2)]
    page = (out / "report.html").read_text(encoding="utf-8")
    section = page.split(f"<summary><code>{CODE}</code>")[1].split("</details>")[0]
    assert len(re.findall("the patient of", section)) == 2
    assert CHECKS[CODE].remedies[0] in section
    capsys.readouterr()
    assert f"{CODE} 2" in stdout_of("check", scans, code=1)


def test_options_of_an_installed_check(shared_patients, scans, tmp_path):
    """It is selected, ignored, given another threshold, and fails a run by its code."""

    def counts(*lint):
        return dict(recordgen.check(scans, lint=lint).dataset.lint)

    assert counts(CODE) == {CODE: 2}
    assert CODE not in counts(f"-{CODE}")
    assert CODE not in counts(f"{CODE}=3")
    assert counts(CODE, f"{CODE}=2") == {CODE: 2}
    with pytest.raises(LintError):
        recordgen.convert(scans, tmp_path / "out", fail_on=CODE)
    assert not (tmp_path / "out/dataset.json").exists()


def test_without_the_package():
    """Its code is unknown, and findings of a dataset that it examined count as warnings."""
    with pytest.raises(UsageError):
        ConvertOptions(lint=(CODE,))
    counts = {"LEAK": 1, CODE: 2}
    assert (count_level(counts, ERROR), count_level(counts, WARNING)) == (1, 2)


def test_only_tasks_with_its_facts(shared_patients, tmp_path):
    """A check of images does not run for texts."""
    (tmp_path / "rows.csv").write_text("TRAIN,a text,x\nTEST,another text,x\n")
    result = recordgen.check(tmp_path / "rows.csv", task="text_classification", lint=CODE)
    assert result.dataset.lint == {}


# the object of an entry point, what the message names
NO_CHECKS = [
    (3, r"\.Check "),
    (Path, r"\.Check "),
    (Check, "'CHECK'"),
    (type("Other", (Check,), {"code": "OTHER"}), "'MINE'"),
    (type("Mine", (Check,), {"code": "MINE"}), "scope"),
    (type("Mine", (Check,), {"code": "MINE", "scope": "all"}), "scope"),
    (type("Mine", (Check,), {"code": "MINE", "scope": EACH, "level": "a"}), "level"),
]


@pytest.mark.parametrize(("found", "words"), NO_CHECKS)
def test_what_is_no_check(found, words):
    """An entry point that points to something else is an error that says what is wrong."""
    with pytest.raises(TypeError, match=words):
        check_declaration("MINE", found)
