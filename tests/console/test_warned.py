"""Warnings and progress of the Python API, which the commands print themselves."""

import inspect
import shutil
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pandas as pd
import pytest

import recordgen
import recordgen.pandas
from recordgen.cli import main
from recordgen.console.terminal import ProgressBar, ProgressLine, progress_for
from recordgen.conversion.api import convert_files
from recordgen.core.flow.runner import LocalRunner
from recordgen.core.progress import COMMIT, Snapshot
from recordgen.errors import UsageError
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions

SOME_REJECTS = {"max_reject_fraction": 1.0}


@pytest.fixture
def rows(make_images):
    """Two missing files, a bad ML_USE, and an image that is in train and, copied, in test."""
    images = make_images(4)
    copy = images[0].with_name("copy.jpg")
    shutil.copy(images[0], copy)
    good = [f"TRAIN,{path},cat" for path in images]
    return [*good, f"TEST,{copy},cat", "TRAIN,no.jpg,cat", "TRAIN,nor.jpg,cat", "TRIAN,a.jpg,cat"]


@pytest.fixture
def source(rows, make_csv):
    return make_csv(rows)


@pytest.fixture
def caught():
    """All warnings of a test, each as often as it is given."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


def by_code(found):
    texts = {str(item.message).partition(":")[0]: str(item.message) for item in found}
    assert len(texts) == len(found), "a code has several warnings"
    assert {item.category for item in found} <= {recordgen.errors.RecordgenWarning}
    assert {item.filename for item in found} <= {__file__}
    return texts


def test_each_code_warns_at_the_line_of_the_user(source, out, caught):
    """A code warns once, with the first place, a remedy and the file of all."""
    recordgen.convert(source, out, **SOME_REJECTS)
    assert {item.lineno for item in caught} == {inspect.stack()[0].lineno - 1}
    texts = by_code(caught)
    assert {"missing_file", "unknown_ml_use", "LEAK", "FEW_EXAMPLES", "NO_EVAL"} <= set(texts)
    assert texts["missing_file"].startswith(f"missing_file: 2 rejected rows. First: {source}:6: ")
    assert f"1 rejected row. First: {source}:8: " in texts["unknown_ml_use"]
    assert texts["unknown_ml_use"].endswith(f". All: {out}/rejects.jsonl")
    assert f": 1 error. First: {source}:" in texts["LEAK"]
    assert "group_by='content'" in texts["LEAK"]
    assert texts["LEAK"].endswith(f"; lint='-LEAK' skips this check. All: {out}/lint.jsonl")
    assert "'cat'" in texts["FEW_EXAMPLES"]
    for file in ("rejects.jsonl", "lint.jsonl"):
        assert (out / file).exists()


def test_a_check_warns_of_all_codes_and_a_plan_of_rows(source, caught):
    """A plan reads no payloads, so it has no findings."""
    result = recordgen.check(source)
    texts = by_code(caught)
    assert result.lint is not None
    assert set(texts) == {item.code for item in result.rejects} | set(result.lint.counts)
    assert texts["LEAK"].endswith("All: the result's lint.findings()")
    caught.clear()
    planned = recordgen.plan(source)
    assert set(by_code(caught)) == {item.code for item in planned.rejects}


def test_data_frames_warn_at_the_line_of_the_user(rows, tmp_path, monkeypatch, caught):
    """The accessor warns like the functions."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame([row.split(",") for row in rows], columns=["split", "image_uri", "label"])
    frame.tensorflow.to_tfrecord(output_dir="out", **SOME_REJECTS)
    assert "First: DataFrame:6: " in by_code(caught)["missing_file"]


def test_a_filter_hides_a_code_and_an_option_its_check(source, tmp_path, caught):
    """Python's filters match the code at the beginning of the text."""
    warnings.filterwarnings("ignore", "LEAK", recordgen.errors.RecordgenWarning)
    recordgen.convert(source, tmp_path / "out", lint="-NO_EVAL", **SOME_REJECTS)
    assert {"FEW_EXAMPLES", "missing_file"} <= set(by_code(caught))
    assert not {"LEAK", "NO_EVAL"} & set(by_code(caught))


def test_warnings_without_a_code(make_images, make_csv, caught):
    """Warnings about the whole dataset are shown, too."""
    one, other = make_images(2)
    source = make_csv([f"TRAIN,{one},1", f"TRAIN,{other},70000000"])
    expected = "too sparse to keep; they are numbered as text (labels=integer keeps them)"
    for run in (recordgen.check, recordgen.plan):
        caught.clear()
        run(source)
        assert [item for item in caught if str(item.message).endswith(expected)]


def test_commands_and_pipelines_do_not_warn(source, tmp_path, caught):
    """They print or log the same."""
    flags = ("--max-reject-fraction=1", "-q")
    assert main(["convert", source, str(tmp_path / "out"), *flags]) == 0
    assert main(["check", source, *flags]) == 1  # it found the leak
    assert main(["convert", source, str(tmp_path / "none"), "--dry-run", *flags]) == 0
    options = ConvertOptions(**SOME_REJECTS)
    convert_files([ImportFile(source)], str(tmp_path / "step"), options, new_runner=LocalRunner)
    assert not caught


def test_secrets_and_controls_are_not_shown(make_images, make_csv, caught):
    """Tokens of URLs and control characters are no part of a warning."""
    [path] = make_images(1)
    lines = [f"TRAIN,{path},cat", "TRAIN,https://a.org/1.jpg?token=hush\x1b[2J,cat"]
    recordgen.check(make_csv(lines))
    assert "not_allowed" in by_code(caught)
    assert not any("hush" in str(it.message) or "\x1b" in str(it.message) for it in caught)


# --- progress -----------------------------------------------------------------------------------


class Screen:
    """A notebook's output: the texts that one display has had."""

    def __init__(self):
        self.texts = []

    def display(self, data, *, raw, display_id):
        assert (raw, display_id, self.texts) == (True, True, [])
        self.update(data, raw=True)
        return self

    def update(self, data, *, raw):
        [(kind, text)] = data.items()
        assert (kind, raw) == ("text/plain", True)
        self.texts.append(text)


@pytest.fixture
def screen(monkeypatch):
    """Make this process look like the kernel of a notebook."""
    found = Screen()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    display = SimpleNamespace(display=found.display)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return found


def test_progress_in_a_notebook_is_one_changing_line(source, tmp_path, screen):
    """One display shows all phases."""
    recordgen.convert(source, tmp_path / "out", **SOME_REJECTS)
    assert screen.texts[0] == "reading and planning rows"
    assert screen.texts[-1].startswith("5 of 5 images (100%), ")
    for run in (recordgen.check, recordgen.plan):
        screen.texts.clear()
        run(source)
        assert screen.texts


def test_a_notebook_ends_with_what_was_written(screen):
    """The last line has the number of examples."""
    line = ProgressLine()
    line.show(Snapshot(seconds=1, noun="image"))
    line.show(Snapshot(phase=COMMIT, seconds=1))
    line.finished()
    assert screen.texts[0] == screen.texts[-1] != screen.texts[-2]


def test_progress_only_where_a_person_waits(source, screen, monkeypatch):
    """Neither pipelines nor other threads show any."""
    recordgen.plan(source, progress=None)
    with pytest.raises(UsageError):
        recordgen.plan(source, progress=True)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(progress_for, "auto").result() is None
    assert not screen.texts
    assert isinstance(progress_for("auto"), ProgressLine)
    monkeypatch.delitem(sys.modules, "IPython")
    assert progress_for("auto") is None  # stderr is no terminal
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    assert isinstance(progress_for("auto"), ProgressBar)
