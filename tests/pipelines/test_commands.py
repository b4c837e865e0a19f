"""Edge cases of the commands: wrong arguments, missing data, interruptions."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from pipelines import demo, lineage, local
from pipelines.samples import __main__ as samples
from pipelines.samples import meters
from pipelines.samples.digits import IMPORT_FILE, write_digit_groups, write_digits
from pipelines.samples.meters import write_meters
from pipelines.settings import Settings, local_input
from pipelines.terminal import run_main
from recordgen.errors import RunnerError, SourceError, UsageError


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_text("TRAIN,1.png,a\n")
    return tmp_path / "data"


def test_help_has_all_headings(capsys):
    """This includes headings whose first option is an option of the pipeline, such as --seed."""
    with pytest.raises(SystemExit):
        local.main(["--help"])
    text = capsys.readouterr().out
    marks = ["options:\n", "  --seed", "  --min-score", "\ninput:\n  --format"]
    marks += ["\nsplits:\n  --split", "\nthe run:\n  --threads", "\ntraining:\n  --model"]
    assert [text.rindex(mark) for mark in marks] == sorted(map(text.rindex, marks))


@pytest.mark.parametrize(
    ("main", "arguments", "message"),
    [
        # command, its arguments, its error; the exit code is 2
        (local.main, [], "required: --data, --workdir"),
        (local.main, ["--data", "x", "--workdir", "y", "--epoch"], "unrecognized|expected one"),
        (local.main, ["--data", "x", "--workdir", "y", "--seed", "a"], "invalid int value: 'a'"),
        (
            local.main,
            ["--task", "image_segmentation"],
            "--task: invalid choice: 'image_segmentation'",
        ),
        (
            demo.main,
            ["--task", "image_segmentation"],
            "--task: invalid choice: 'image_segmentation'",
        ),
        (demo.main, ["--images", "3"], "--images must be at least 100"),
        (lineage.main, [], "required: --workdir"),
    ],
)
def test_usage_errors_of_argparse(main, arguments, message, capsys):
    """Wrong arguments: the usage, the reason, code 2, and TFX is not loaded."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        # further arguments, exit code, stderr
        (["--epochs", "0"], 2, "error: epochs must be at least 1 (got 0)"),
        (["--min-score", "2"], 2, "error: min_score must be from 0 to 1 (got 2.0)"),
        (["--task", "image_multi_label", "--epochs", "0"], 2, "error: epochs must be at least 1"),
        (["--task", "declared"], 2, "error: the task declared needs a schema"),
        (
            ["--task", "tabular", "--schema", '{"age": "int"}'],
            2,
            "error: schema declares the columns, but the task tabular has its own",
        ),
        (["--task", "tabular"], 2, "error: a model of a table needs the column to predict"),
        (
            ["--schema", '{"age": "int", "note": "text"}'],
            2,
            "error: a model of declared columns needs a column to predict: declare it as label, "
            "int_label or float_label (got age, note, without one)",
        ),
        (["--max-reject-fraction", "-1"], 2, "error: max_reject_fraction must be from 0 to 1"),
        (["--name", ""], 2, "error: name must not be empty"),
        (["--data", "/nowhere"], 1, "error: /nowhere: no such file or folder"),
    ],
)
def test_settings_are_checked_first(data, tmp_path, arguments, code, message, capsys):
    """A wrong value is one line on stderr, before anything is loaded or written."""
    workdir = tmp_path / "work"
    given = ["--data", str(data), "--workdir", str(workdir), *arguments]
    assert local.main(given) == code
    assert capsys.readouterr().err.startswith(message)
    assert not workdir.exists()


def test_epochs_of_a_demo(tmp_path, capsys):
    """--epochs replaces the sample's number; a wrong one is one line, before data are written."""
    assert demo.demo_settings("tabular", str(tmp_path / "a"), None, 2).training.epochs == 2
    assert demo.demo_settings("tabular", str(tmp_path / "a"), None, None).training.epochs > 2
    assert demo.main(["--workdir", str(tmp_path / "b"), "--epochs", "0"]) == 2
    assert capsys.readouterr().err == "error: epochs must be at least 1 (got 0)\n"
    assert not (tmp_path / "b").exists()


def test_lineage_without_a_store(tmp_path, capsys):
    """Without a run there is no lineage; the error names the remedy."""
    assert lineage.main(["--workdir", str(tmp_path)]) == 1
    assert "no metadata store here; run a pipeline" in capsys.readouterr().err


def test_interruption_is_one_line(capsys):
    """Ctrl-C ends with the shell's code and no traceback."""

    def interrupted():
        raise KeyboardInterrupt

    assert run_main(interrupted) == 130
    assert capsys.readouterr().err.strip().startswith("interrupted: run it again")


def test_bugs_keep_their_traceback():
    """Only errors that users can fix are shortened."""

    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_main(broken)


def test_data_is_a_folder_or_a_file(data):
    """A CSV and the folder that contains it are the same input."""
    assert local_input(str(data), "*.csv") == (str(data), "*.csv")
    assert local_input(f"{data}/a.csv", "*.csv") == (str(data), "a.csv")
    with pytest.raises(SourceError, match="no such file or folder"):
        local_input(f"{data}/b.csv", "*.csv")


@pytest.mark.parametrize("wrong", [{"name": ""}, {"min_score": 2}, {"span": 3}])
def test_settings_are_valid_once_they_exist(wrong):
    """The settings check their values, so components need not; a span needs a pattern."""
    Settings(input_base="a", pattern="{SPAN}/*.csv", span=3)
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Settings(input_base="a", **wrong)


def settings_of(given):
    return local.parse_settings(local.build_parser().parse_args(given))


def test_the_task_is_found_out_from_the_files(tmp_path, capsys):
    """The task is detected from the files of all spans, before TFX is loaded, or from options."""
    for span, label in ((1, "praise"), (2, "blame")):
        (tmp_path / f"{span}").mkdir()
        (tmp_path / f"{span}/a.csv").write_text(f'TRAIN,"Well, so it goes",{label}\n')
    given = ["--data", str(tmp_path), "--workdir", str(tmp_path / "work"), "--pattern", "{SPAN}/*"]
    settings = settings_of(given)
    assert (settings.task, settings.pattern) == ("text_classification", "{SPAN}/*")
    assert capsys.readouterr().out.startswith("task: text_classification (")
    (tmp_path / "2/a.csv").write_text("TRAIN,a.jpg,cat\n")
    with pytest.raises(UsageError, match="may have more than one task"):
        settings_of(given)
    for span in (1, 2):
        (tmp_path / f"{span}/a.csv").write_text("age,label\n3,yes\n")
    given += ["--columns", "target=label"]
    assert settings_of(given).task == "tabular"
    (tmp_path / "photos-1/cat").mkdir(parents=True)
    (tmp_path / "photos-1/cat/1.png").write_bytes(b"")
    given = [*given[:4], "--pattern", "photos-{SPAN}/"]
    assert settings_of(given).task == "image_classification"


def test_a_schema_makes_the_task(data, tmp_path):
    """A schema on the command line, as a file or as JSON, implies the task."""
    (tmp_path / "columns.json").write_text('{"photo": "image", "kind": "label"}')
    for schema in (tmp_path / "columns.json", '{"photo": "image", "kind": "label"}'):
        given = ["--data", str(data), "--workdir", str(tmp_path), "--schema", str(schema)]
        settings = settings_of(given)
        assert settings.task == "declared"
        assert json.loads(settings.options.schema) == {"photo": "image", "kind": "label"}
    given = ["--data", str(data), "--workdir", str(tmp_path)]
    assert settings_of(given).task == "image_classification"


def test_digits_are_written_once(tmp_path):
    """Complete files are not touched; files missing after an interrupted run are added."""
    path = write_digits(str(tmp_path), 20)
    assert path == str(tmp_path / IMPORT_FILE)
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
    assert {p for p in times if again[p] != times[p]} == {
        tmp_path / "images/0007.png",
        tmp_path / IMPORT_FILE,
    }


def test_groups_show_their_labels(tmp_path):
    """An image's labels are its digits, and no scan is in images of two splits."""
    scans = load_digits()
    number_of = {pixels.tobytes(): number for number, pixels in enumerate(scans.images)}
    write_digit_groups(str(tmp_path), 400)
    splits: dict[int, set[str]] = defaultdict(set)
    sizes = Counter()
    for line in (tmp_path / IMPORT_FILE).read_text().splitlines():
        split, name, *labels = line.split(",")
        with Image.open(tmp_path / name) as image:
            pixels = np.rint(np.asarray(image) * (16 / 255))
        cells = [cell for cell in np.hsplit(pixels, 3) if cell.any()]
        numbers = [number_of[np.ascontiguousarray(cell).tobytes()] for cell in cells]
        assert sorted({str(scans.target[number]) for number in numbers}) == labels
        sizes[len(numbers)] += 1
        for number in numbers:
            splits[number].add(split)
    assert set(sizes) == {1, 2, 3}
    assert all(len(found) == 1 for found in splits.values())
    assert set().union(*splits.values()) == {"TRAIN", "VALIDATION", "TEST"}


def test_readings_follow_from_their_columns(tmp_path):
    """The label depends on all columns, and no scan is in readings of two splits."""
    digits = load_digits().target
    shifts = {note.split("{")[0]: more for more, notes in meters.NOTES for note in notes}
    splits: dict[str, set[str]] = defaultdict(set)
    with open(write_meters(str(tmp_path), 60), encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        shown = sum(int(digits[int(row[name][7:11])]) for name in ("day", "night"))
        [more] = [more for note, more in shifts.items() if row["note"].startswith(note)]
        apart = shown - int(row["usual"]) - more
        assert abs(apart) > 2
        assert row["verdict"] == ("more" if apart > 0 else "less")
        for name in ("day", "night"):
            splits[row[name]].add(row["split"])
    assert all(len(found) == 1 for found in splits.values())
    assert set().union(*splits.values()) == {"TRAIN", "VALIDATION", "TEST"}
    assert list(rows[0]) == list(json.loads(meters.METERS.options["schema"]))


def test_the_sample_of_declared_columns_is_what_the_script_writes(tmp_path, capsys):
    """The command on the task's page writes the files in examples/."""
    assert samples.main(["declared", str(tmp_path), "--examples", "12"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/meters.csv\n"
    sample = Path(__file__).parents[2] / "examples/declared"
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.*")}
    assert written == {path.relative_to(sample) for path in sample.rglob("*.*")}
    for name in written:
        assert (sample / name).read_bytes() == (tmp_path / name).read_bytes()


def test_a_sample_as_a_command(tmp_path, capsys):
    """The command writes the sample of a task, and prints the path of its import file."""
    assert samples.main(["image_multi_label", str(tmp_path), "--examples", "3"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / IMPORT_FILE}\n"
    assert len((tmp_path / IMPORT_FILE).read_text().splitlines()) == 3


def test_metadata_that_another_process_holds(tmp_path: Path) -> None:
    """A lasting SQLite lock makes the run fail before its first step, with file and remedy."""
    path = tmp_path / "metadata.sqlite"
    local.check_not_locked(str(path))
    assert not path.exists()
    # isolation_level=None: the test itself sends BEGIN and ROLLBACK.
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(
            RunnerError, match=rf"{path}: .*\(database is locked\); wait for the run"
        ):
            local.check_not_locked(str(path), seconds=0.01)
        other.execute("ROLLBACK")
        local.check_not_locked(str(path))
        other.execute("BEGIN EXCLUSIVE")  # the check holds no lock
