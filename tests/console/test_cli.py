"""The command line: exit codes, messages, summaries."""

import json
import os
import re
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from recordgen import convert, read_dataset, write
from recordgen.cli import main
from recordgen.options import OPTIONS
from recordgen.samples import write_photos
from tests.conftest import run_python


@pytest.fixture
def recordgen(capfd, caplog):
    """Return a function that runs a command: exit code, stdout, stderr and log."""

    def run(*args):
        caplog.clear()
        try:
            code = main(args)
        except SystemExit as end:  # of argparse
            code = end.code
        out, errors = capfd.readouterr()
        return SimpleNamespace(returncode=code, stdout=out, stderr=errors + caplog.text)

    return run


@pytest.fixture
def source(make_images, make_csv):
    """Six good rows, two of each split, labels cat and dog."""
    splits, rows = ("TRAIN", "VALIDATION", "TEST"), enumerate(make_images(6))
    return make_csv(f"{splits[n % 3]},{path},{('cat', 'dog')[n % 2]}" for n, path in rows)


def test_inspect_has_a_column_for_each_written_feature(tmp_path, recordgen):
    """Long texts and lists are cut, with the number of their values."""
    output = str(tmp_path / "out")
    write([{"name": "a", "x": [0.1] * 9}, {"name": "b" * 99, "x": [1.5] * 9}], output, shards=1)
    assert recordgen("inspect", output).stdout.splitlines() == [
        "  #  name                                      x",
        "  0  a                                         [0.1, 0.1, 0.1, 0.1, … 9 values]",
        f"  1  {'b' * 39}…  [1.5, 1.5, 1.5, 1.5, … 9 values]",
    ]


def test_a_dry_run_lists_the_shards_that_are_then_written(source, tmp_path, recordgen):
    """The plan has the number of examples and shards that the conversion writes."""
    args = ("convert", source, str(tmp_path / "out"), "--shard-by=label")
    dry = json.loads(recordgen(*args, "--dry-run", "--json").stdout)
    table = recordgen(*args, "--dry-run").stdout
    written = json.loads(recordgen(*args, "--json", "-q").stdout)
    assert recordgen("report", f"{args[2]}/dataset.json", "-q").stdout == ""
    for name, split in written["splits"].items():
        assert [shard["label"] for shard in split["shards"]] == ["cat", "dog"]
        assert dry["splits"][name]["shards"] == 2
        [line] = [line.split() for line in table.splitlines() if line.split()[:1] == [name]]
        assert line[:3] == [name, "2", "2"]


# arguments ({source}, {output}); exit code; words of the one message
WRONG = [
    (["convert", "{output}/none.csv", "{output}"], 1, "no such import file"),
    (["convert", "{source}"], 2, "OUTPUT"),
    (["convert", "{source}", "{output}", "--sed", "3"], 2, "--sed"),
    (["convert", "{source}", "{output}", "--runner=X"], 2, "X; Beam flags follow after --"),
    (["convert", "{source}", "{output}", "--verbose"], 2, "--verbose; see"),
    (["convert", "{source}", "{output}", "--check=maybe"], 2, "'maybe'"),
    (["convert", "{source}", "{output}", "--shard-by=class"], 2, "'class'"),
    (["convert", "{source}", "{output}", "--shard-mb=0"], 2, "shard_mb"),
    (["convert", "{source}", "{output}", "--split=a,b"], 2, "80,10,10"),
    (["convert", "{source}", "{output}", "--limit=mbs=3"], 2, "did you mean 'mb'?"),
    (["convert", "{source}", "{output}", "--limit=mb=x"], 2, "limit: mb must be a number"),
    (["inspect", "{output}"], 1, "no dataset.json here"),
    (["inspect", "{source}"], 1, "not a TFRecord file?"),
    (["convert", "{source}", "{source}"], 2, "folder"),
    (["inspect", "{output}", "--to={source}"], 1, "no dataset.json here"),
    (["nonsense"], 2, "'nonsense'"),
    (["export", "nonsense", "{output}"], 2, "'nonsense'"),
    (["export", "croissant", "{output}"], 1, "dataset.json"),
    (["inspect", "{output}", "surplus"], 2, "arguments: surplus; see"),
    (["inspect", "{output}-dataset.json"], 1, "out-dataset.json: no dataset.json here"),
    (["export", "tfdv", "{output}", "--overwrite"], 2, "--overwrite"),
    (["export", "lineage", "{output}", "--output=a"], 2, "--output"),
    (["diff", "{output}"], 2, "NEW"),
    (["diff", "{output}", "{output}", "--fail-on=leak"], 2, "'leak'"),
    (["diff", "{output}", "{output}", "--fail-on="], 2, "--fail-on"),
    (["diff", "{output}", "{output}"], 1, "no dataset.json here"),
    (["diff", "{output}", ""], 2, "new "),
    (["diff", "{output}", "{output}", "--", "--runner=X"], 2, "Beam flags after --"),
]


@pytest.mark.parametrize(("args", "code", "words"), WRONG, ids=[" ".join(w[0]) for w in WRONG])
def test_a_wrong_call_ends_with_its_code(args, code, words, source, tmp_path, recordgen, caplog):
    """There is one error, no traceback and no output."""
    done = recordgen(*(arg.format(source=source, output=tmp_path / "out") for arg in args))
    assert done.returncode == code
    assert words in done.stderr
    assert [it.levelname for it in caplog.records].count("ERROR") == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "out" / "dataset.json").exists()


def test_too_many_rejects_end_with_1_and_debug_has_a_traceback(make_csv, tmp_path, recordgen):
    """The message names file, line, code and path; only --debug shows a traceback."""
    bad = make_csv(["TRAIN,nowhere.jpg,cat"], name="bad.csv")
    output = str(tmp_path / "out")
    checked = recordgen("check", bad)
    assert checked.returncode == 1
    assert re.search(f"{bad}:1: missing_file: .*{tmp_path}/nowhere.jpg", checked.stdout)
    assert recordgen("convert", bad, output, "--dry-run").returncode == 1
    traced = recordgen("convert", bad, output, "-q", "--debug")
    assert traced.returncode == 1
    assert "Traceback" in traced.stderr
    assert traced.stderr.rstrip().endswith("rejects.jsonl")


# A bug in the step after the first finished shard.
BUG = """
import sys
from recordgen.cli import main
from recordgen.core.runs.staging import Staging

write = Staging.write_result
Staging.write_result = lambda *args: (write(*args), 1 / 0)
main(["convert", *sys.argv[1:], "-q"])
"""


def test_a_bug_shows_its_traceback_and_the_finished_shards(source, tmp_path):
    """An unforeseen error keeps its traceback, and the message counts what a resumed run keeps."""
    done = run_python("-W", "ignore", "-c", BUG, source, str(tmp_path / "out"))
    assert "1 finished shard " in done.stderr
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize("command", ["convert", "check"])
def test_help_names_every_option_with_its_default(command, recordgen):
    """Each flag has its help, its choices and its default, in the order of groups."""
    text = " ".join(recordgen(command, "--help").stdout.split())
    for name, option in OPTIONS.items():
        value = option.metavar or (f"{{{','.join(option.choices)}}}" if option.choices else "")
        flag = f" --{name.replace('_', '-')} {value} ".replace("  ", " ") + option.plain_help
        assert flag in text
        about = text.split(flag)[1].split(" --")[0]
        default = (option.default_text or option.unset).replace("`", "")
        assert (f"(default: {default})" in about) == ("(default:" in about) == bool(default), name
    marks = ["SOURCE", " splits: ", " --seed N", " labels: ", " the run: ", " --threads N"]
    assert [text.rindex(mark) for mark in marks] == sorted(map(text.rindex, marks))
    assert "(default: 80,10,10)" in text
    assert "auto, image_classification, image_multi_label" in text
    assert "Beam flags" in text


def test_quiet_and_home(source, tmp_path, recordgen, monkeypatch):
    """-q prints nothing if all goes well; ``~`` is the home in sources, outputs and options."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    home = f"~/{os.path.relpath(source, tmp_path)}"
    done = recordgen("convert", home, "~/out", "-q", "--allow", "~/")
    assert (done.returncode, done.stdout) == (0, "")
    assert recordgen("inspect", "~/out/dataset.json", "--to", "~/images").returncode == 0
    convert(home, "~/other", vocabulary="~/out/labels.txt")
    assert read_dataset("~/other").labels == read_dataset(tmp_path / "out").labels
    write_photos("~/photos", 1)
    assert not (tmp_path / "~").exists()


def test_a_shell_completes_commands_and_options(tmp_path, monkeypatch, capsys):
    """argcomplete finds its mark in the module, and gets the parser with all commands."""
    code = "def autocomplete(parser):\n    print(parser.format_help())\n    raise SystemExit\n"
    (tmp_path / "argcomplete.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    with pytest.raises(SystemExit):
        main(["conv"])
    assert "convert" in capsys.readouterr().out
    module = Path(find_spec("recordgen.__main__").origin)
    assert b"PYTHON_ARGCOMPLETE_OK" in module.read_bytes()[:1024]
