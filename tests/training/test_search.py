"""The settings of a hyperparameter search, before any training."""

from __future__ import annotations

import json
import sys

import pytest

from recordgen.errors import MissingPackageError, UsageError
from recordgen.training import SearchConfig, tuner_fn
from recordgen.training.search import Choices, Range, tuned_settings


@pytest.mark.parametrize(
    ("custom_config", "space"),
    [
        # custom_config, the values to try
        (
            None,
            {"learning_rate": Range(1e-4, 1e-2, "log"), "dropout": Range(0.0, 0.5, "linear")},
        ),
        (
            {"model": "VGG16", "weights": "w.h5", "frozen_epochs": 1, "fine_tune_rate": 0.01},
            {
                "learning_rate": Range(1e-4, 1e-2, "log"),
                "fine_tune_rate": Range(0.001, 0.1, "log"),
                "dropout": Range(0.0, 0.5, "linear"),
            },
        ),
        (
            {
                "search": {
                    "batch_size": [16, 32, 64],
                    "epochs": [1, 9, "log"],
                    "dropout": [0, 0.25],
                    "learning_rate": [1, 2, "linear"],
                    "schedule": ["cosine", "constant"],
                    "image_size": [[8, 8], [16, 24]],
                },
                "epochs": 3,
            },
            {
                "batch_size": Choices((16, 32, 64)),
                "epochs": Range(1, 9, "log"),
                "dropout": Choices((0.0, 0.25)),
                "learning_rate": Range(1.0, 2.0, "linear"),
                "schedule": Choices(("cosine", "constant")),
                "image_size": Choices(("[8, 8]", "[16, 24]")),
            },
        ),
    ],
)
def test_spaces(custom_config, space):
    """A list is a choice; a list that ends with a scale is a range; there is a default."""
    carried = json.loads(json.dumps(custom_config))
    found = SearchConfig.from_custom_config(carried).space
    assert {name: repr(it) for name, it in found.items()} == {
        name: repr(it) for name, it in space.items()
    }


def test_settings_of_a_trial():
    """A trial's values replace settings; KerasTuner's text becomes a size."""
    config = SearchConfig.from_custom_config(
        {"search": {"image_size": [[8, 8], [16, 24]], "batch_size": [4, 8]}, "epochs": 3}
    )
    found = config.of_trial({"image_size": "[16, 24]", "batch_size": 8})
    assert (found.image_size, found.batch_size, found.epochs) == ((16, 24), 8, 3)


@pytest.mark.parametrize(
    ("custom_config", "message"),
    [
        # custom_config, the error
        ({"serach": {}}, r"must only have search, trials, .*\(got serach; did you mean 'search'"),
        ({"search": {}}, r"search must map settings .*\(got \{\}\)"),
        ({"search": [1]}, r"search must map settings .*\(got \[1\]\)"),
        ({"search": {"rate": [1, 2]}}, r"search must only have model, .*\(got rate"),
        ({"search": {"seed": [1, 2]}}, r"search must only have .*\(got seed"),
        ({"search": {"dropout": 0.5}}, r"dropout must be a list of at least two .*\(got 0.5\)"),
        ({"search": {"dropout": [0.5]}}, r"dropout must be a list of at least two"),
        ({"search": {"dropout": [0, 1]}}, r"search: dropout must be from 0 to below 1 \(got 1.0\)"),
        ({"search": {"dropout": [0, 0.5, "log"]}}, r"scale of dropout must be .* above 0"),
        ({"search": {"dropout": [0, 0.5, "lin"]}}, r"scale of dropout must be 'linear', or"),
        ({"search": {"dropout": [0.5, 0.1, "linear"]}}, r"must be two numbers, the lower one"),
        ({"search": {"dropout": [0.5, "linear"]}}, r"must be two numbers, the lower one"),
        ({"search": {"epochs": [1, 2.5, "log"]}}, r"epochs must be two whole numbers"),
        ({"search": {"epochs": [1, 2.5]}}, r"search: epochs must be a whole number \(got 2.5\)"),
        ({"search": {"epochs": [0, 3, "linear"]}}, r"search: epochs must be at least 1 \(got 0\)"),
        ({"search": {"schedule": ["cosine", "step"]}}, r"search: schedule must be one of"),
        ({"search": {"weights": [None, "a.h5"]}}, r"weights must not have null"),
        ({"search": {"image_size": [[8, 8], [0, 8]]}}, r"search: image_size must be height"),
        ({"trials": 0}, r"trials must be a whole number, at least 1 \(got 0\)"),
        ({"trials": True}, r"trials must be a whole number, at least 1 \(got True\)"),
        ({"algorithm": "grid"}, r"algorithm must be one of random, bayesian \(got 'grid'\)"),
    ],
)
def test_wrong_searches(custom_config, message):
    """A wrong search is refused before training; the error names key, value and remedy."""
    with pytest.raises(UsageError, match=message):
        SearchConfig.from_custom_config(custom_config)


def test_settings_that_a_tuner_found():
    """The Trainer uses only values of settings, not the values that Hyperband adds."""
    values = {"batch_size": 16, "image_size": "[32, 48]", "tuner/epochs": 3}
    found = tuned_settings({"space": [], "values": values})
    assert found == {"batch_size": 16, "image_size": [32, 48]}
    assert tuned_settings(None) == {}


@pytest.mark.parametrize(
    ("hyperparameters", "message"),
    [
        # fn_args.hyperparameters, the error
        ({"values": {"units": 3}}, r"hyperparameters must only have model, .*\(got units"),
        ({"space": []}, r"must be the config of KerasTuner's HyperParameters"),
    ],
)
def test_settings_of_another_tuner(hyperparameters, message):
    """Values that are not settings of the training are an error, not ignored."""
    with pytest.raises(UsageError, match=message):
        tuned_settings(hyperparameters)


def test_without_keras_tuner(monkeypatch):
    """The error is one line, with the package to install."""
    monkeypatch.delitem(sys.modules, "recordgen.training.tuner", raising=False)
    monkeypatch.setitem(sys.modules, "keras_tuner", None)
    with pytest.raises(MissingPackageError) as found:
        tuner_fn(None)
    assert str(found.value) == (
        "a search for hyperparameters needs keras_tuner, which is not installed: "
        "pip install 'recordgen[tfx]'"
    )
