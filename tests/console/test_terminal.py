"""Text on a terminal: labels, names and texts cannot control it or hide."""

import json
import logging
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

import recordgen
from recordgen.cli import main
from recordgen.console.terminal import TextFormatter, escaped, one_line
from tests.conftest import encoded, noise, python_environment

CLEAR, TURN = "\x1b[2J", "\u202e"
LABEL = f"cat{CLEAR}{TURN}"
NAME = f"a{CLEAR}{TURN}\x9b.png"

# text, shown text
TEXTS = [
    ("plain, Füße, 日本, 👩‍🚀\n", "plain, Füße, 日本, 👩‍🚀\n"),
    ("a\x1b[31mb\x07\x00", "a\\u001b[31mb\\u0007\\u0000"),
    ("a\rb\tc\x7f\x9b", "a\\u000db\\u0009c\\u007f\\u009b"),
    ("\u202eabc\u202c\u2066\u200f\ufeff", "\\u202eabc\\u202c\\u2066\\u200f\\ufeff"),
    ("so\xadft\u2029\u3164\u180e", "so\\u00adft\\u2029\\u3164\\u180e"),
    ("\u2028\x85\udc80\U000e0041", "\\u2028\\u0085\\udc80\\udb40\\udc41"),
]


@pytest.mark.parametrize(("text", "shown"), TEXTS, ids=range(len(TEXTS)))
def test_escapes_are_those_of_json(text, shown):
    """Escaped JSON has the same meaning."""
    assert escaped(text) == shown
    assert one_line(text) == shown.replace("\n", "\\n")
    assert json.loads(escaped(json.dumps([text], indent=2, ensure_ascii=False))) == [text]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """An import file with a label, a file name and a reject that would control a terminal."""
    folder = tmp_path_factory.mktemp("rows")
    (folder / NAME).write_bytes(encoded(noise(), "PNG"))
    (folder / "b.png").write_bytes(encoded(noise(seed=1), "PNG"))
    rows = [f"TRAIN,{NAME},{LABEL}", f"TEST,b.png,{LABEL}", f"TRAIN,gone{CLEAR},{LABEL}"]
    path = folder / "rows.csv"
    path.write_text("\n".join([*rows, f"TRAIN{TURN},b.png,x"]) + "\n", encoding="utf-8")
    return path


def is_harmless(text):
    kinds = {unicodedata.category(letter) for letter in text.replace("\n", "")}
    return kinds.isdisjoint(("Cc", "Cf", "Zl"))


def test_commands_print_escaped_text(source, tmp_path, capfd, caplog):
    """No label, name or message can control the terminal."""
    caplog.set_level(logging.INFO)
    out, other = str(tmp_path / "out"), str(tmp_path / "other")
    reject = ["--max-reject-fraction", "1"]
    small = tmp_path / "small.csv"
    small.write_text(f"TRAIN,{source.parent}/{NAME},{TURN}\n", encoding="utf-8")
    calls = [
        ["convert", str(source), out, *reject],
        ["convert", str(small), other, *reject],
        ["convert", str(source), out, *reject, "--dry-run"],
        *(["check", str(source), *reject, *json_] for json_ in ([], ["--json"])),
        ["inspect", out],
        *(["diff", out, other, *json_] for json_ in ([], ["--json"])),
        ["export", "lineage", out],
    ]
    escaping = ("convert", "check", "diff")
    for call in calls:
        assert main(call) == (call[0] == "diff")
        shown = capfd.readouterr().out
        assert is_harmless(shown), call
        assert ("1b[2J" in shown or "u202e" in shown) == (call[0] in escaping), call
        assert call[-1] != "--json" or json.loads(shown)
    assert (tmp_path / "out/labels.txt").read_text(encoding="utf-8") == f"{LABEL}\n"
    other = logging.makeLogRecord({"name": "library", "msg": LABEL})
    lines = [TextFormatter().format(record) for record in (*caplog.records, other)]
    assert lines[-1].endswith(": cat\\u001b[2J\\u202e")
    assert all(map(is_harmless, lines))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is full")
@pytest.mark.parametrize("command", ["check a.csv --task tabular", "diff out out --json", "--help"])
@pytest.mark.parametrize(("stdout", "status"), [(">/dev/full", 1), (">&-", 0)])
def test_a_full_disk_behind_stdout_is_an_error_in_one_line(command, stdout, status, tmp_path):
    """A result that cannot be printed is no success; a stdout that is closed is no error."""
    (tmp_path / "a.csv").write_text("a,b\n1,x\n2,y\n")
    recordgen.convert(tmp_path / "a.csv", tmp_path / "out", task="tabular")
    program = [sys.executable, "-W", "ignore", "-m", "recordgen", *command.split()]
    how = {"cwd": tmp_path, "env": python_environment(), "stderr": subprocess.PIPE, "text": True}
    done = subprocess.run(["sh", "-c", f'"$@" {stdout}', "sh", *program], check=False, **how)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert status == 0 or done.stderr.splitlines()[-1].startswith("recordgen: ")
