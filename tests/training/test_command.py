"""``python -m recordgen.training``, with the variables of a custom job of Vertex AI."""

from unittest import mock

import pytest

import recordgen
from pipelines.samples.digits import write_digits
from recordgen.lineage import LINEAGE_FILE
from recordgen.training import __main__ as command
from recordgen.training.config import TRAINING_OPTIONS
from tests.preloaded import WITH_TENSORFLOW


def test_a_custom_job_says_where_files_go(tmp_path, monkeypatch):
    """Variables of a custom job name the folders of all files."""
    dataset = str(tmp_path / "dataset")
    recordgen.convert(write_digits(str(tmp_path / "data"), 60), dataset)
    for name in ("MODEL_DIR", "CHECKPOINT_DIR", "TENSORBOARD_LOG_DIR"):
        monkeypatch.setenv(f"AIP_{name}", str(tmp_path / name.lower()))
    flags = "--epochs=2 --image-size 8 8 --learning_rate=0.01 --checkpoint-minutes=0"
    done = WITH_TENSORFLOW.run("-m", "recordgen.training", dataset, *flags.split())
    assert done.returncode == 0, done.stderr
    assert "epoch 2/2" in done.stderr
    model = tmp_path / "model_dir"
    assert (model / "saved_model.pb").exists()
    assert done.stderr.splitlines()[-1].endswith(str(model))
    assert '"learning_rate": 0.01' in (model / LINEAGE_FILE).read_text()
    assert list((tmp_path / "tensorboard_log_dir").rglob("events.out.tfevents*"))
    assert (tmp_path / "checkpoint_dir").is_dir()
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("model", "code"), [("", 2), (".", 2), ("new/model", 2), ("../new", 0), ("~/new", 0)]
)
def test_the_model_needs_a_folder_outside_of_the_dataset(model, code, examples, monkeypatch):
    """``~`` is the home in each path; nothing is written if the folder does not suit."""
    monkeypatch.chdir(examples)
    monkeypatch.setenv("HOME", "/home/me")
    with mock.patch.object(command, "run_fn") as run_fn:
        flags = [f"--model-dir={model}", "--base-model=~/old", "--checkpoint_dir=~/c"]
        assert command.main([examples, *flags]) == code
    for [arguments], _ in run_fn.call_args_list:
        assert arguments.serving_model_dir == model.replace("~", "/home/me")
        assert arguments.base_model == "/home/me/old"
        assert arguments.custom_config == {"checkpoint_dir": "/home/me/c"}
    assert run_fn.called == (code == 0)


@pytest.mark.parametrize("name", TRAINING_OPTIONS)
def test_every_setting_is_a_flag_in_both_spellings(name):
    """Each setting is a flag with underscores and with hyphens."""
    kind = TRAINING_OPTIONS[name].kind
    choice = next(iter(TRAINING_OPTIONS[name].choices or ()), kind("1"))
    words = [str(choice)] * len(TRAINING_OPTIONS[name].metavar.split() or [1])
    for flag in (f"--{name}", f"--{name.replace('_', '-')}"):
        found = vars(command.build_parser().parse_args(["dataset", flag, *words]))[name]
        assert found == (choice if len(words) == 1 else [choice] * len(words))
    assert (f", --{name}" in command.build_parser().format_help()) == ("_" in name)
