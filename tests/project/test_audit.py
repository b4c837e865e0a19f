"""`make audit` and `make sbom`: versions looked up, exit status, packages of the image."""

import re
import sys

import pytest

from tests.conftest import load_script
from tests.formats.sources import write_files
from tests.pages import ROOT

LOCKS = [path.read_text() for path in sorted((ROOT / "locks").glob("*.txt"))]
RULES = (ROOT / "locks/forbidden").read_text()


@pytest.fixture(scope="module")
def audit():
    return load_script("audit")


def test_every_version_of_every_lock_is_looked_up(audit):
    """Each once; a list has one version of a package."""
    lists = audit.divide(LOCKS)
    pins = [pin for each in lists for pin in each]
    assert len(pins) == len(set(pins))
    assert set(pins) == {word for lock in LOCKS for word in re.findall(r"^\S+==\S+", lock, re.M)}
    for each in lists:
        assert len({pin.split("==")[0] for pin in each}) == len(each)


def test_no_lock_has_a_forbidden_version(audit):
    """The tests that rules name exist."""
    pins = [pin for each in audit.divide(LOCKS) for pin in each]
    rules = audit.read_rules(RULES)
    assert not audit.forbidden(pins, rules)
    for rule in rules:
        if rule.test:
            file, _, name = rule.test.partition("::")
            assert f"def {name}(" in (ROOT / file).read_text()


def test_a_version_in_the_range_of_a_rule_is_named(audit):
    """A known vulnerability is accepted under any of its names."""
    rules = audit.read_rules("# note\n\na<2 ; CVE-1\nb<2 ; CVE-2 PYSEC-2 ; tests/x.py::test_x\n")
    (line,) = audit.forbidden(["a==1.9", "a==2", "b==1", "ab==1"], rules)
    assert line.startswith("a 1.9: CVE-1 ")
    for name, status in (("CVE-2", 0), ("CVE-3", 1)):
        vulnerable = {"id": "GHSA-2", "fix_versions": ["2"], "aliases": [name]}
        answers = [{"name": "b", "version": "1", "vulns": [vulnerable]}]
        assert audit.judge(answers, rules)[1] == status


SOUND = {"name": "six", "version": "1.17.0", "vulns": []}
VULNERABILITY = {"id": "PYSEC-2024-60", "fix_versions": ["3.7"], "aliases": []}
BAD = {"name": "idna", "version": "3.6", "vulns": [VULNERABILITY]}
SKIPPED = {"name": "own", "skip_reason": "own (1.0)"}


# answers, status, words
ANSWERS = [
    ([SOUND], 0, "1 versions looked up, 0 "),
    ([SOUND, BAD], 1, "idna 3.6: PYSEC-2024-60 (fixed in 3.7)"),
    ([BAD, SKIPPED], 1, "own (1.0)"),
    # pip-audit itself reports success here.
    ([SOUND, SKIPPED], 2, "1 versions not looked up"),
]


@pytest.mark.parametrize(
    ("answers", "status", "words"),
    ANSWERS,
    ids=["sound", "vulnerable", "vulnerable-and-unknown", "unknown"],
)
def test_how_it_ends(answers, status, words, audit):
    """Status and words for each kind of answer."""
    lines, found = audit.judge(answers, audit.read_rules(RULES))
    assert found == status
    assert words in "\n".join(lines)


def test_without_network_the_status_is_2(audit, tmp_path, monkeypatch, capsys):
    """The last line says why, and another service is named."""
    tool = tmp_path / "python"
    tool.write_text("#!/bin/sh\necho Traceback >&2\necho 'ConnectionError: pypi.org' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tool))
    monkeypatch.setattr(sys, "argv", ["audit"])
    assert audit.main() == 2
    said = capsys.readouterr()
    assert said.err == "ConnectionError: pypi.org\n"
    assert 'make audit ARGS="--service osv"' in said.out


def test_only_installed_packages_of_debian_are_listed(tmp_path):
    """With the name and version that others know."""
    files = {
        "usr/lib/os-release": 'ID=debian\nVERSION_ID="13"\n',
        "var/lib/dpkg/status": (
            "Package: libstdc++6\nStatus: install ok installed\nArchitecture: amd64\n"
            "Description: library\n more\nVersion: 14.2.0-19\n\n"
            "Package: gone\nStatus: deinstall ok config-files\nArchitecture: all\nVersion: 1\n\n"
        ),
    }
    (found,) = load_script("sbom").debian_packages(write_files(tmp_path, files))
    purl = "pkg:deb/debian/libstdc%2B%2B6@14.2.0-19?arch=amd64&distro=debian-13"
    assert found == {
        "bom-ref": purl,
        "name": "libstdc++6",
        "purl": purl,
        "type": "library",
        "version": "14.2.0-19",
    }
