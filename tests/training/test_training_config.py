import json

import pytest

from recordgen.errors import UsageError
from recordgen.training import TrainingConfig


def test_a_config_survives_json():
    config = TrainingConfig(image_size=(32, 48), model="MobileNetV2", weights="imagenet", seed=4)
    carried = json.loads(json.dumps(config.to_custom_config()))
    assert TrainingConfig.from_custom_config(carried) == config


@pytest.mark.parametrize("nothing", [None, {}])
def test_without_a_custom_config_every_field_has_its_default(nothing):
    assert TrainingConfig.from_custom_config(nothing) == TrainingConfig()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        # custom_config, the error
        (
            {"epoch": 3},
            r"must only have model, weights, .*frames.*\(got epoch; did you mean 'epochs'\?",
        ),
        ({"epochs": True}, r"epochs must be a whole number \(got True\)"),
        ({"learning_rate": True}, r"learning_rate must be a number \(got True\)"),
        ({"learning_rate": float("nan")}, r"learning_rate must be a number \(got nan\)"),
        ({"warmup_epochs": float("inf")}, r"warmup_epochs must be a number \(got inf\)"),
        ({"image_size": [True, 3]}, r"image_size must be height and width"),
        ({"model": 3}, r"model must be a text \(got 3\)"),
        ({"checkpoint_dir": None}, r"checkpoint_dir must be a text \(got None\)"),
        ({"schedule": "linear"}, r"schedule must be one of cosine, constant \(got 'linear'\)"),
        ({"patience": -1}, r"patience must not be negative \(got -1\)"),
        ({"accumulate": 0}, r"accumulate must be at least 1 \(got 0\)"),
        ({"frozen_epochs": 1}, r"frozen_epochs=1 needs weights"),
        (
            {"model": "VGG16", "weights": "w.h5", "epochs": 2, "frozen_epochs": 3},
            r"frozen_epochs must not be above epochs, 2 \(got 3\)",
        ),
        ({"model": "VGG16", "weights": ""}, r"weights must name a file \(got ''\)"),
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
        ({"weights": "imagenet"}, r"small_cnn has no pretrained weights"),
    ],
)
def test_a_wrong_setting_is_refused_before_training(values, message):
    with pytest.raises(UsageError, match=message):
        TrainingConfig.from_custom_config(values)
