"""The settings of a hyperparameter search, before any training."""

import sys

import pytest

from recordgen.errors import MissingPackageError, UsageError
from recordgen.training import SearchConfig, tuner_fn
from recordgen.training.search import tuned_settings


@pytest.mark.parametrize(
    ("custom_config", "message"),
    [
        # custom_config, the error
        ({"serach": {}}, r"trials.*'search'"),
        ({"trials": True}, "trials"),
        ({"algorithm": "grid"}, "'grid'"),
    ],
)
def test_a_wrong_search_is_refused_before_training(custom_config, message):
    with pytest.raises(UsageError, match=message):
        SearchConfig.from_custom_config(custom_config)


def test_only_settings_of_a_tuners_result_are_used():
    values = {"batch_size": 16, "image_size": "[32, 48]", "tuner/epochs": 3}
    found = tuned_settings({"space": [], "values": values})
    assert found == {"batch_size": 16, "image_size": [32, 48]}
    assert tuned_settings(None) == {}


def test_values_that_are_no_settings_are_an_error():
    with pytest.raises(UsageError):
        tuned_settings({"values": {"units": 3}})


def test_without_keras_tuner(monkeypatch):
    monkeypatch.delitem(sys.modules, "recordgen.training.tuner", raising=False)
    monkeypatch.setitem(sys.modules, "keras_tuner", None)
    with pytest.raises(MissingPackageError) as found:
        tuner_fn(None)
    assert str(found.value) == (
        "a search for hyperparameters needs keras_tuner, which is not installed: "
        "pip install 'recordgen[tfx]'"
    )
