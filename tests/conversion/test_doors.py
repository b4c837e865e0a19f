"""Errors name options in the spelling of the door through which the user came."""

import inspect

import pandas as pd
import pytest

import recordgen
from recordgen.cli import main
from recordgen.conversion import api
from recordgen.conversion.results import as_flags, as_keywords
from recordgen.errors import DataError, RecordgenError
from tests.conftest import error_of

# a message of the command, the same in Python
SPELLED = [
    ("use --columns path=1,label=2, or --append;", "use columns='path=1,label=2', or append=True;"),
    ("use --columns 'path=a b,label=c'", "use columns='path=a b,label=c'"),
    ("use --columns header=no if it is a row", "use columns='header=no' if it is a row"),
    ("use --schema, or --task tabular", "use schema, or task='tabular'"),
    ("such as --columns target=5; if", "such as columns='target=5'; if"),
    ("--eval-from train:10 moves", "eval_from='train:10' moves"),
    ("or --overwrite (with --resume if", "or overwrite=True (with resume=True if"),
    ("set --task, and keep", "set task, and keep"),
    ("--allow FOLDER.", "allow='FOLDER'."),
    ("--allow http allows it", "allow='http' allows it"),
    ("--group-by content keeps copies", "group_by='content' keeps copies"),
    ("use --seed and --nonsense here", "use seed and --nonsense here"),
    ("a – b -- c, runs--seed/1.jpg", "a – b -- c, runs--seed/1.jpg"),
    # Beam's flags, and options of other commands
    ("--runner=X --direct_num_workers=2", "--runner=X --direct_num_workers=2"),
    ("omit --to", "omit --to"),
    ("a--task b", "a--task b"),
]


@pytest.mark.parametrize(("text", "expected"), SPELLED)
def test_spelling(text, expected):
    """The spelling for commands becomes that of Python, which stays as it is."""
    assert as_keywords(text) == expected
    assert as_keywords(expected) == expected


# a message of Python, the same at the command
TYPED = [
    ("labels=none says that no row has one", "--labels none says that no row has one"),
    ("(got labels='a b'); give", "(got --labels 'a b'); give"),
    ("use max_reject_fraction=1.", "use --max-reject-fraction 1."),
    ("use group_by='content', or", "use --group-by content, or"),
    ("omit format=yolo, or append=True", "omit --format yolo, or --append"),
    ("use --columns split=fold,label=x", "use --columns split=fold,label=x"),
    ("columns='split=fold' names it", "--columns split=fold names it"),
    ("b/split=train/a.csv?seed=2&task=x", "b/split=train/a.csv?seed=2&task=x"),
    ("seed must be a whole number", "seed must be a whole number"),
]


@pytest.mark.parametrize(("text", "expected"), TYPED)
def test_keywords_become_flags(text, expected):
    """A value is quoted for a shell; roles of columns and parts of paths are no options."""
    assert as_flags(text) == as_flags(expected) == expected


def test_functions_are_those_of_the_command():
    """They differ only in the texts of errors: editors see the same signature and text."""
    for name in ("convert", "check", "plan"):
        own, other = getattr(recordgen, name), getattr(api, name)
        assert inspect.signature(own) == inspect.signature(other)
        assert own.__doc__ == other.__doc__


def test_errors_from_python_do_not_speak_of_flags(tmp_path, caplog):
    """One fault, two doors."""
    (tmp_path / "iris.csv").write_text("5.1,setosa\n4.9,setosa\n")
    source = str(tmp_path / "iris.csv")
    assert main(["check", source, "--task", "tabular"]) == 2
    assert "use --columns header=yes" in caplog.text
    for call in (recordgen.check, recordgen.plan, recordgen.convert):
        given = {"output": tmp_path / "out"} if call is recordgen.convert else {}
        error = error_of(RecordgenError, call, source, task="tabular", **given)
        assert "use columns='header=yes'" in str(error)
        assert "--" not in str(error)
    frame = pd.DataFrame({"text": ["Good one.", "Bad one."], "label": ["1", "[2]"]})
    assert "--" not in str(error_of(RecordgenError, recordgen.check, frame))


def test_rejects_keep_their_place_in_the_error(tmp_path):
    """A DataError begins with its message and carries its rejects."""
    (tmp_path / "a.csv").write_text("a,b\n1\n2\n3,4\n")
    paths = tmp_path / "a.csv", tmp_path / "out"
    error = error_of(DataError, recordgen.convert, *paths, task="tabular")
    assert len(error.rejects) == 2
    assert str(error).startswith(error.message)
