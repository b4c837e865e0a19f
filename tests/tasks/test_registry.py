"""The registry of tasks: declarations of our own, and tasks that other packages install."""

import importlib
import json
import sys

import numpy as np
import pytest
import tensorflow as tf

import recordgen
from pipelines.samples import sample_of
from recordgen import tasks
from recordgen.core.task.annotation import LABEL_FILES
from recordgen.errors import UsageError
from recordgen.formats.format import CsvParser
from recordgen.kubeflow.models import evaluation_of
from recordgen.reading.kinds import Kind, kind_for
from recordgen.registry import OWN, TASK_CHOICES, Registry, has_plug_ins
from recordgen.tasks import TASKS
from recordgen.training.learner import TaskTrainer
from tests.conftest import ROOT, run_python
from tests.trainer import train

PAIRS = str(ROOT / "examples/own_task/pairs.csv")


# --- our own ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OWN)
def test_a_task_is_declared_in_one_place(name):
    """Each path that a class declares can be imported, and has the right type."""
    task = TASKS[name]
    assert task.name == name
    assert getattr(tasks, task.__name__) is task
    assert task.expected
    assert task.noun
    assert task.csv_parser or task.json_keys
    assert task.csv_parser is None or issubclass(task.declared("csv_parser"), CsvParser)
    assert isinstance(kind_for(name), Kind)
    assert issubclass(task.declared("trainer"), TaskTrainer)
    assert {*task.files(())} < {*LABEL_FILES}  # a later run must know them without importing tasks
    assert task.declared("measure")(2).needs
    assert callable(sample_of(name).write)


def test_the_page_of_formats_lists_all_tasks():
    """Each with a link to its page."""
    text = (ROOT / "docs/formats.md").read_text(encoding="utf-8")
    for name in TASKS:
        assert f"[`{name}`](tasks/" in text


def test_names_are_known_without_loading_a_task():
    """Options can be checked before any task is imported."""
    code = (
        "import sys; from recordgen.options import ConvertOptions\n"
        "from recordgen.tasks import TASKS\n"
        "assert 'tabular' in TASKS and len(list(TASKS)) >= 10\n"
        "ConvertOptions(task='tabular')\n"
        "print([name for name in sys.modules if name.startswith('recordgen.tasks.')])\n"
    )
    assert run_python("-c", code).stdout == "[]\n"


def test_what_a_task_has_not():
    """A missing or broken declaration is an error that names the task."""

    class Plain(TASKS["image_classification"]):
        name = "plain"
        sample = None
        trainer = "nowhere.model:Trainer"
        measure = "recordgen.training.measures:NoAccumulator"

    with pytest.raises(UsageError, match=r"plain .*sample"):
        Plain.declared("sample")
    for what in ("trainer", "measure"):
        with pytest.raises(UsageError, match=f"{what} .*plain "):
            Plain.declared(what)


# --- tasks of other packages ------------------------------------------------------------------

WHOLE = """
from recordgen.tasks import TextClassification

class Mine(TextClassification):
    name = "mine"
"""


def tasks_found():
    """Return a registry of tasks that has not searched yet."""
    return Registry(
        "recordgen.tasks", OWN, "task", check="recordgen.core.task.task:check_declaration"
    )


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a package: its metadata and a module."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(package, entry_point, module="", code=""):
        info = tmp_path / f"{package.replace('-', '_')}-2.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.1\n")
        (info / "entry_points.txt").write_text(f"[recordgen.tasks]\n{entry_point}\n")
        if module:
            (tmp_path / f"{module}.py").write_text(code)
            monkeypatch.delitem(sys.modules, module, raising=False)
        importlib.invalidate_caches()

    return install


def test_plug_ins_of_other_packages_are_told(install, monkeypatch):
    """Commands leave pandas to their code."""
    found = tasks_found()
    monkeypatch.setattr("recordgen.registry.TASKS", found)
    assert not has_plug_ins()
    install("my-task", "mine = my_task_module:Mine")
    found.refresh()
    assert has_plug_ins()


def test_a_task_that_is_installed_later_is_found_after_a_refresh(install):
    """It is listed after our own, and imported when it is used."""
    found = tasks_found()
    assert "mine" not in found
    install("my-task", "mine = my_task_module:Mine", "my_task_module", WHOLE)
    assert "mine" not in found
    found.refresh()
    assert list(found) == [*OWN, "mine"]
    assert len(found) == len(OWN) + 1
    assert "my_task_module" not in sys.modules
    assert found["mine"].name == "mine"
    assert found["mine"] is found["mine"]


BARE = "from recordgen.tasks import Task\nclass Mine(Task):\n    name = 'mine'\n"

# target of the entry point, what the message names
BROKEN_TASKS = [
    ("import nothing_like_that", "ModuleNotFoundError: .*'nothing_like_that'"),
    ("1 / 0", "ZeroDivisionError: "),
    ("x = 1", "'Mine'"),
    ("Mine = 3", r"recordgen.tasks.Task \(got 3\)"),
    (WHOLE.replace('"mine"', '"yours"'), "'mine', .*'yours'"),
    (BARE, "Mine .* kind, noun, expected, features, reading, make, csv_parser"),
]


@pytest.mark.parametrize(("code", "message"), BROKEN_TASKS)
def test_a_broken_task_names_its_package(install, code, message):
    """Other tasks stay usable."""
    install("bad-task", "mine = bad_task_module:Mine", "bad_task_module", code)
    found = tasks_found()
    expected = rf"'mine' .* bad-task 2.1 .*\(.*:Mine\): .*{message}"
    with pytest.raises(UsageError, match=expected):
        _ = found["mine"]
    assert found["tabular"] is TASKS["tabular"]


# name, packages
NAMESAKES = [
    ("mine", "one-task 2.1 and two-task 2.1"),
    ("tabular", "recordgen and one-task 2.1 and two-task 2.1"),
]


@pytest.mark.parametrize(("name", "packages"), NAMESAKES)
def test_two_packages_with_one_name(install, name, packages):
    """Neither is used, and the message names both."""
    install("one-task", f"{name} = one_task_module:Mine", "one_task_module", WHOLE)
    install("two-task", f"{name} = two_task_module:Mine", "two_task_module", WHOLE)
    found = tasks_found()
    with pytest.raises(UsageError, match=f"'{name}' .* {packages};"):
        _ = found[name]
    assert list(found).count(name) == 1


def test_no_such_task(tmp_path):
    """The message lists all names; a dataset of an unknown task is not read as images."""
    with pytest.raises(UsageError, match=r"^task .*image_class.* \(got 'mine'\)"):
        _ = TASKS["mine"]
    assert TASKS.get("mine") is None
    recordgen.write(iter([{"x": 1}]), str(tmp_path))
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "task": "mine"}))
    for read in (recordgen.load, recordgen.train_dataset):
        with pytest.raises(UsageError, match="'mine'"):
            read(str(tmp_path))


@pytest.mark.slow
def test_an_installed_task_goes_all_the_way(text_pairs, tmp_path, stdout_of):
    """Pairs of texts with a score: converted by the command, read, learnt, measured."""
    assert "text_similarity" in TASK_CHOICES
    output = str(tmp_path / "out")
    shown = stdout_of("convert", PAIRS, output, "--task", "text_similarity")
    assert "57 read, 57 examples" in shown
    assert 'train | ["The waiter reads a book.", ' in shown

    texts, scores = next(iter(recordgen.load(output, batch_size=8)["train"]))
    assert (texts["first"].dtype, texts["second"].shape) == (tf.string, (8,))
    assert set(np.unique(scores)) <= {0.0, 0.5, 1.0}
    fed = recordgen.input_fn(output, task="text_similarity", split="eval", batch_size=100)
    assert len(next(iter(fed))[1]) == 15 == recordgen.steps_per_epoch(output, 1, split="eval")

    model = train(output, tmp_path, epochs=5, batch_size=8, learning_rate=0.01)
    signature = tf.saved_model.load(model).signatures["serving_default"]
    same = signature(first=tf.constant(["A dog sings."]), second=tf.constant(["A dog sings."]))
    assert 0 < same["score"].numpy()[0] < 2
    found = evaluation_of(model, output, recordgen.read_dataset(output), "eval")
    assert (found.measure, found.examples) == ("r2", 15)
    assert found.score > 0.3
