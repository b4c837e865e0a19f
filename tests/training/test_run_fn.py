from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from recordgen import features, read_dataset, write
from recordgen.core.records.example import serialize_example
from recordgen.errors import DataError, RecordError, SourceError, UsageError
from recordgen.exports.lineage import find_lineage
from recordgen.training import TrainingConfig, run_fn
from recordgen.training.inputs import examples_root
from recordgen.training.model import build_model
from recordgen.training.run import fit, plan_epochs
from tests import trainer
from tests.conftest import convert_lines

FAST = {"image_size": [8, 8], "batch_size": 12, "epochs": 12, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def trained(examples, tmp_path_factory):
    """A trained model, and the folder of its logs."""
    root = tmp_path_factory.mktemp("trained")
    trainer.train(examples, root, **FAST, top_k=2)
    return root


@pytest.mark.slow
def test_an_unlabelled_record_has_weight_0(trained):
    """The truth has number, weight and unknown labels of each record."""
    truth = tf.saved_model.load(str(trained / "model")).signatures["truth"]
    texts = (b"red", None, b"blue", b"pink")
    values = [{features.IMAGE_ENCODED: b"x", features.IMAGE_CLASS_TEXT: text} for text in texts]
    records = [b"".join(serialize_example(each)) for each in values]
    found = truth(examples=tf.constant(records))
    assert {name: value.numpy().tolist() for name, value in found.items()} == {
        "label": [2, 0, 0, -1],
        "weight": [1.0, 0.0, 1.0, 1.0],
        "unknown": [[b"", b""], [b"", b""], [b"", b""], [b"pink", b""]],
        "known": [b"'blue', 'green', 'red'"] * 4,
    }


@pytest.mark.slow
def test_a_seed_decides_the_weights(fn_args):
    """Another seed gives other weights."""

    def train(name, seed):
        config = TrainingConfig.from_custom_config({**FAST, "epochs": 1, "seed": seed})
        return fit(fn_args(name, eval_files=[]), config)[0].models.saved.get_weights()

    # test_fitting shows that one seed gives the same bytes.
    assert not np.allclose(train("a", 1)[0], train("b", 2)[0], rtol=1e-4)


# steps per pass, requested epochs, requested total of steps → steps per epoch, epochs
STEPS = [
    (100, 5, None, (100, 5)),
    (100, 5, 0, (100, 5)),
    (100, 5, 250, (84, 3)),
    (100, 5, 100, (100, 1)),
    (100, 5, 7, (7, 1)),
]


@pytest.mark.parametrize(("per_pass", "epochs", "train_steps", "expected"), STEPS)
def test_train_steps_override_epochs(per_pass, epochs, train_steps, expected):
    """The total of steps is divided into whole passes."""
    assert plan_epochs(per_pass, epochs, train_steps) == expected


def test_an_artifacts_uri_and_split_follow_from_any_path():
    """Several spans are one split; different splits are an error."""
    assert examples_root(["gs://b/p/examples/7/Split-train/*"]) == ("gs://b/p/examples/7", "train")
    assert examples_root(["a/Split-train/*", "b/Split-train/*"]) == (("a", "b"), "train")
    with pytest.raises(UsageError):
        examples_root(["a/Split-train/*", "b/Split-eval/*"])


# the mistake, the error, its message
MISTAKES = [
    (dict(custom_config={"model": "Resnet"}), UsageError, r"keras\.applications: .*VGG16"),
    (dict(custom_config={"epoch": 1}), UsageError, "epoch"),
    (dict(hyperparameters={"values": {"units": 3}}), UsageError, "units"),
    (dict(train_files=["/nowhere/Split-train/*"]), SourceError, r"dataset\.json"),
    (dict(custom_config={"patience": 1, **FAST}, eval_files=[]), UsageError, "patience"),
    (
        dict(custom_config={"model": "VGG16", "weights": "/nowhere/w.h5", "image_size": [32, 32]}),
        SourceError,
        r"weights.*/nowhere",
    ),
    (dict(custom_config={"model": "InceptionV3", "image_size": [32, 32]}), UsageError, "model"),
]


@pytest.mark.parametrize(("changes", "error", "message"), MISTAKES)
def test_a_mistake_is_reported_before_training(fn_args, changes, error, message):
    """The error names the setting or the file."""
    with pytest.raises(error, match=message):
        run_fn(fn_args(**changes))


def test_unlabelled_images_are_refused(fn_args, examples, tmp_path):
    """There is nothing to learn."""
    images = Path(examples).parent
    lines = [f"TRAIN,{images}/1.png", f"TRAIN,{images}/2.png"]
    out = convert_lines(tmp_path, lines, labels="none")
    with pytest.raises(DataError):
        run_fn(fn_args(train_files=[f"{out}/Split-train/*"]))


def test_a_damaged_record_is_named(fn_args, damaged_shard):
    """The error has the shard and the number of the record."""
    changed = fn_args(train_files=[str(damaged_shard)], custom_config=FAST)
    with pytest.raises(RecordError, match=rf"{damaged_shard}: record \d+: "):
        run_fn(changed)


@pytest.mark.slow
def test_a_backbone_takes_0_to_1_and_returns_probabilities():
    """They add up to 1 and depend on the image."""
    config = TrainingConfig(model="MobileNetV2", image_size=(32, 40), dropout=0)
    model = build_model(config, classes=3, activation="softmax")
    images = np.random.default_rng(0).random((2, 32, 40, 3), np.float32)
    # training=True: with untrained normalisation, random weights give a constant.
    scores = model(images, training=True).numpy()
    assert scores.shape == (2, 3)
    np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-5)
    assert not np.allclose(scores[0], scores[1])


@pytest.mark.slow
def test_a_warm_start_answers_like_the_first_model_before_its_first_step(
    trained, fn_args, examples, tmp_path
):
    """Scores move with the names of labels, and another architecture is an error."""
    source = Path(read_dataset(examples).source[0])
    rows = source.read_text().replace(",blue", ",zinc").splitlines()
    convert_lines(source.parent, rows, tmp_path / "out", source="renamed.csv")
    settings = {**FAST, "learning_rate": 1e-9, "augmentation": 0.0}
    del settings["image_size"]  # it is the first model's
    found = {"space": [], "values": {"epochs": 1, "tuner/epochs": 3}}  # as KerasTuner writes them
    files = {"train_files": [f"{tmp_path}/out/Split-train/*"], "eval_files": []}
    known = {"base_model": str(trained / "model"), "hyperparameters": found}
    args = fn_args(custom_config=settings, **files, **known)
    run_fn(args)
    assert find_lineage(args.serving_model_dir).model.settings["epochs"] == 1
    records = tf.constant(trainer.records_of(examples))
    old, new = (
        tf.saved_model.load(path).signatures["evaluate"](examples=records)["scores"].numpy()
        for path in (str(trained / "model"), args.serving_model_dir)
    )
    # blue, green, red → green, red, zinc: both models agree on green and red.
    is_red = old.argmax(axis=1) == 2
    assert is_red.any()
    assert (new[is_red].argmax(axis=1) == 1).mean() > 0.9
    for settings, message in (
        ({"image_size": [32, 32]}, r" \d+ weights .* \d+"),
        ({"image_size": [8, 8], "model": "MobileNetV2"}, "at least|weights"),
    ):
        changed = fn_args("other", custom_config=settings, base_model=str(trained / "model"))
        with pytest.raises(UsageError, match=message):
            run_fn(changed)


def test_written_examples_have_no_model(tmp_path):
    """Examples that Recordgen wrote from Python have no task, and so no model."""
    write(iter([{"x": 1.0}]), str(tmp_path / "out"))
    expected = "out: there is no model for the task 'examples'; train your own model with recordgen"
    with pytest.raises(DataError, match=expected):
        trainer.train(str(tmp_path / "out"), tmp_path)
