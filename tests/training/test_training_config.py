from __future__ import annotations

import json

import pytest

from recordgen.errors import UsageError
from recordgen.training import TrainingConfig


def test_custom_config_round_trip():
    """What a pipeline's definition says is what run_fn reads, through JSON."""
    config = TrainingConfig(image_size=(32, 48), model="MobileNetV2", weights="imagenet", seed=4)
    carried = json.loads(json.dumps(config.to_custom_config()))
    assert TrainingConfig.from_custom_config(carried) == config


@pytest.mark.parametrize("nothing", [None, {}])
def test_defaults(nothing):
    """Without a custom_config every field has its default."""
    assert TrainingConfig.from_custom_config(nothing) == TrainingConfig()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        # custom_config, what the error says
        ({"epoch": 3}, r"must only have model, weights, .*frames \(got epoch\)"),
        ({"image_size": [0, 3]}, r"image_size must be height and width"),
        ({"image_size": [3]}, r"image_size must be height and width"),
        ({"image_size": 3}, r"image_size must be height and width"),
        ({"batch_size": 0}, r"batch_size must be at least 1 \(got 0\)"),
        ({"epochs": 0}, r"epochs must be at least 1 \(got 0\)"),
        ({"frames": 0}, r"frames must be at least 1 \(got 0\)"),
        ({"epochs": "3"}, r"epochs must be a whole number \(got '3'\)"),
        ({"batch_size": 2.5}, r"batch_size must be a whole number \(got 2.5\)"),
        ({"learning_rate": 0}, r"learning_rate must be above 0 \(got 0\)"),
        ({"learning_rate": "1e-3"}, r"learning_rate must be a number \(got '1e-3'\)"),
        ({"dropout": None}, r"dropout must be a number \(got None\)"),
        ({"dropout": 1}, r"dropout must be from 0 to below 1 \(got 1\)"),
        ({"augmentation": -0.1}, r"augmentation must be from 0 to below 1"),
        ({"weights": "mine"}, r"weights must be None or 'imagenet' \(got 'mine'\)"),
        ({"weights": "imagenet"}, r"small_cnn has no pretrained weights"),
    ],
)
def test_wrong_values(values, message):
    """A wrong setting is refused before anything is trained."""
    with pytest.raises(UsageError, match=message):
        TrainingConfig.from_custom_config(values)
