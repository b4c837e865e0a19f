import json

import pytest

from recordgen.errors import UsageError
from recordgen.training import TrainingConfig


def test_a_config_survives_json():
    """TFX passes settings on as JSON, with keys of its own for Vertex AI."""
    config = TrainingConfig(image_size=(32, 48), model="MobileNetV2", weights="imagenet", seed=4)
    carried = json.loads(json.dumps(config.to_custom_config()))
    vertex = {"ai_platform_enable_vertex": True, "ai_platform_training_args": {"project": "p"}}
    assert TrainingConfig.from_custom_config({**vertex, **carried}) == config


@pytest.mark.parametrize("nothing", [None, {}])
def test_without_a_custom_config_every_field_has_its_default(nothing):
    """TFX gives None."""
    assert TrainingConfig.from_custom_config(nothing) == TrainingConfig()


# custom_config, the error
WRONG_SETTINGS = [
    ({"epoch": 3}, r"'epoch'.*'epochs'"),
    ({"epochs": True}, "epochs"),
    ({"learning_rate": True}, "learning_rate"),
    ({"learning_rate": float("nan")}, "learning_rate"),
    ({"warmup_epochs": float("inf")}, "warmup_epochs"),
    ({"image_size": [True, 3]}, "image_size"),
    ({"checkpoint_dir": None}, "checkpoint_dir"),
    ({"schedule": "linear"}, r"schedule.*'linear'"),
    ({"patience": -1}, "patience"),
    ({"accumulate": 0}, "accumulate"),
    ({"frozen_epochs": 1}, "frozen_epochs"),
    (
        {"model": "VGG16", "weights": "w.h5", "epochs": 2, "frozen_epochs": 3},
        r"frozen_epochs.*epochs",
    ),
    ({"model": "VGG16", "weights": ""}, "weights"),
    ({"image_size": [0, 3]}, "image_size"),
    ({"image_size": "3max"}, "image_size"),
    ({"batch_size": 0}, "batch_size"),
    ({"epochs": 0}, "epochs"),
    ({"frames": 0}, "frames"),
    ({"batch_size": 2.5}, "batch_size"),
    ({"learning_rate": 0}, "learning_rate"),
    ({"learning_rate": "1e-3"}, r"learning_rate.*'1e-3'"),
    ({"dropout": None}, "dropout"),
    ({"dropout": 1}, "dropout"),
    ({"augmentation": -0.1}, "augmentation"),
    ({"seed": -1}, r"seed.*0.*4294967296.*-1"),
    ({"seed": 1 << 32}, r"seed.*0.*4294967296"),
    ({"weights": "imagenet"}, "small_cnn"),
]


@pytest.mark.parametrize(("values", "message"), WRONG_SETTINGS)
def test_a_wrong_setting_is_refused_before_training(values, message):
    """The error names the setting and its value."""
    with pytest.raises(UsageError, match=message):
        TrainingConfig.from_custom_config(values)
