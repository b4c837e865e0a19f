"""Edge cases of the commands: wrong arguments, missing data, interruptions."""

import importlib
import json
import sys
from unittest.mock import Mock

import pytest

import pipelines
from pipelines import demo, local
from pipelines.samples import __main__ as samples
from pipelines.samples.digits import IMPORT_FILE, write_digits
from pipelines.settings import local_input
from pipelines.terminal import run_main
from recordgen.errors import SourceError, UsageError
from tests.conftest import error_of


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_text("TRAIN,1.png,a\n")
    return tmp_path / "data"


# command, its arguments
WRONG_CALLS = [
    (local.main, []),
    (local.main, ["--data", "x", "--workdir", "y", "--epoch"]),
    (local.main, ["--data", "x", "--workdir", "y", "--seed", "a"]),
    (local.main, ["--task", "audio"]),
    (demo.main, ["--task", "audio"]),
    (demo.main, ["--images", "3"]),
]


@pytest.mark.parametrize(("main", "arguments"), WRONG_CALLS)
def test_a_wrong_call_ends_with_code_2(main, arguments):
    """Argparse ends the command with the code for wrong usage."""
    assert error_of(SystemExit, main, arguments).code == 2


SPANS = ["--pattern", "{SPAN}/*.csv", "--curated-schema"]

# arguments, exit code, the option or path that the error names
WRONG_SETTINGS = [
    (["--epochs", "0"], 2, "epochs"),
    (["--min-score", "2"], 2, "min_score"),
    (["--task", "image_multi_label", "--epochs", "0"], 2, "epochs"),
    (["--task", "declared"], 2, "schema"),
    (["--task", "tabular", "--schema", '{"age": "int"}'], 2, "schema"),
    (["--task", "tabular"], 2, "column"),
    (["--schema", '{"age": "int", "note": "text"}'], 2, "int_label"),
    (["--max-reject-fraction", "-1"], 2, "max_reject_fraction"),
    (["--name", ""], 2, "name"),
    (["--data", "/nowhere"], 1, "/nowhere"),
    (["--curated-schema", "{data}/a.csv"], 2, "{SPAN}"),
    ([*SPANS, "{data}/a.csv", "--window", "0"], 2, "window"),
    ([*SPANS, "/none.pbtxt"], 1, "none.pbtxt"),
]


@pytest.mark.parametrize(("arguments", "code", "named"), WRONG_SETTINGS)
def test_a_wrong_setting_is_one_line_and_no_file(data, tmp_path, arguments, code, named, capsys):
    """The line names the option or path, and no folder is made."""
    workdir = tmp_path / "work"
    (data / "1").mkdir()
    (data / "1/a.csv").write_text("TRAIN,1.png,a\n")
    arguments = [each.replace("{data}", str(data)) for each in arguments]
    assert local.main(["--data", str(data), "--workdir", str(workdir), *arguments]) == code
    [line] = capsys.readouterr().err.splitlines()
    assert named in line
    assert not workdir.exists()


def test_epochs_replace_the_number_of_the_sample(tmp_path, capsys):
    """Without the option, the sample's own number of epochs counts."""
    assert demo.demo_settings("tabular", str(tmp_path / "a"), None, 2).training.epochs == 2
    assert demo.demo_settings("tabular", str(tmp_path / "a"), None, None).training.epochs > 2
    assert demo.main(["--workdir", str(tmp_path / "b"), "--epochs", "0"]) == 2
    assert "epochs" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


def test_without_tfx_the_error_is_one_line(monkeypatch, data, capsys):
    """The line names the extra that installs TFX."""
    for name in ("local", "metadata"):
        monkeypatch.setattr(pipelines, name, None)  # put back at the end, with the modules
        monkeypatch.delitem(sys.modules, f"pipelines.{name}")
    for name in ("ml_metadata", "tfx"):
        monkeypatch.setitem(sys.modules, name, None)
    found = importlib.import_module("pipelines.local")
    assert found.main(["--data", str(data), "--workdir", str(data / "work")]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "recordgen[tfx]" in line


def test_ctrl_c_is_one_line_and_a_bug_keeps_its_traceback(capsys):
    """Only the user's doings become lines; Ctrl-C has its usual exit code."""

    def ended_by(error):
        return run_main(Mock(side_effect=error))

    assert ended_by(KeyboardInterrupt) == 130
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    with pytest.raises(ZeroDivisionError):
        ended_by(ZeroDivisionError)


def test_data_is_a_folder_or_a_file(data):
    """A folder of import files, one file, and a folder of images each give folder and pattern."""
    assert local_input(str(data), "*.csv") == (str(data), "*.csv")
    assert local_input(f"{data}/a.csv", "*.csv") == (str(data), "a.csv")
    (data / "photos/cat").mkdir(parents=True)  # a folder without an import file
    assert local_input(f"{data}/photos/", "*.csv") == (str(data), "photos/")
    with pytest.raises(SourceError):
        local_input(f"{data}/b.csv", "*.csv")


def settings_of(data, *options):
    args = local.build_parser().parse_args(["--data", str(data), "--workdir=~/work", *options])
    assert "~" not in args.workdir
    return local.parse_settings(args)


def test_the_task_is_detected_from_all_spans_or_options(tmp_path, capsys):
    """Spans of different tasks are refused; options decide before files."""
    for span, label in ((1, "praise"), (2, "blame")):
        (tmp_path / f"{span}").mkdir()
        (tmp_path / f"{span}/a.csv").write_text(f'TRAIN,"Well, so it goes",{label}\n')
    spans = ("--pattern", "{SPAN}/*")
    settings = settings_of(tmp_path, *spans)
    assert (settings.task, settings.pattern) == ("text_classification", "{SPAN}/*")
    assert capsys.readouterr().out.startswith("task: text_classification (")
    (tmp_path / "2/a.csv").write_text("TRAIN,a.jpg,cat\n")
    with pytest.raises(UsageError, match="1"):
        settings_of(tmp_path, *spans)
    for span in (1, 2):
        (tmp_path / f"{span}/a.csv").write_text("age,label\n3,yes\n")
    assert settings_of(tmp_path, *spans, "--columns", "target=label").task == "tabular"
    for label in ("cat", "dog"):
        (tmp_path / "photos-1" / label).mkdir(parents=True)
        (tmp_path / f"photos-1/{label}/{label}.png").write_bytes(b"")
    photos = settings_of(tmp_path, "--pattern", "photos-{SPAN}/")
    assert photos.task == "image_classification"


def test_a_schema_implies_the_task(data, tmp_path):
    """Columns that a schema declares have the task ``declared``."""
    (tmp_path / "columns.json").write_text('{"photo": "image", "kind": "label"}')
    for schema in (tmp_path / "columns.json", '{"photo": "image", "kind": "label"}'):
        settings = settings_of(data, "--schema", str(schema))
        assert settings.task == "declared"
        assert json.loads(settings.options.schema) == {"photo": "image", "kind": "label"}
    assert settings_of(data).task == "image_classification"


def test_digits_are_written_once(tmp_path):
    """A second run writes only what is missing or incomplete, so times stay."""
    assert write_digits(str(tmp_path), 20) == str(tmp_path / IMPORT_FILE)
    lines = (tmp_path / IMPORT_FILE).read_text().splitlines()
    assert len(lines) == 20
    assert lines[0] == "TRAIN,images/0000.png,0"
    times = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    assert len(times) == 21

    (tmp_path / "images/0007.png").unlink()
    (tmp_path / "images/0009.png.tmp").write_bytes(b"half")
    (tmp_path / IMPORT_FILE).write_text("TRAIN,im")
    write_digits(str(tmp_path), 20)
    assert (tmp_path / IMPORT_FILE).read_text().splitlines() == lines
    again = {p: p.stat().st_mtime_ns for p in times}
    renewed = {p for p in times if again[p] != times[p]}
    assert renewed == {tmp_path / "images/0007.png", tmp_path / IMPORT_FILE}


def test_a_command_writes_the_sample_of_a_task(tmp_path, capsys):
    """It prints the path to import."""
    assert samples.main(["image_multi_label", str(tmp_path), "--examples", "3"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / IMPORT_FILE}\n"
    assert len((tmp_path / IMPORT_FILE).read_text().splitlines()) == 3
