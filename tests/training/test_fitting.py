"""Fitting a model: phases, rates, early stopping; test_replicas.py resumes after a kill."""

import itertools

import keras
import pytest

from recordgen import eval_dataset, read_dataset
from recordgen.errors import UsageError
from recordgen.tasks.images.training import ManyImageLabels, OneImageLabel
from recordgen.tasks.object_detection.training import ObjectDetector
from recordgen.tasks.texts.training import EntityTagger, OneTextLabel
from recordgen.tasks.video_classification.training import VideoTrainer
from recordgen.training import TrainingConfig
from recordgen.training.fitting import Fitting, Phase, find_replicas, learning_rates, plan_phases
from recordgen.training.model import Models, backbone_of, build_model
from tests.trainer import trainer_of

COLOURED = {"crop": 0.0, "flip": False, "brightness": 0.1, "contrast": 0.1, "saturation": 0.1}


# settings, epochs of the training, its phases
PHASES = [
    ({}, 3, [Phase(0, 3, 1e-3, False)]),
    ({"frozen_epochs": 2}, 5, [Phase(0, 2, 1e-3, True), Phase(2, 5, 1e-4, False)]),
    ({"frozen_epochs": 2}, 1, [Phase(0, 1, 1e-3, True)]),
]


@pytest.mark.parametrize(("settings", "epochs", "expected"), PHASES)
def test_the_last_layer_is_trained_before_all(settings, epochs, expected):
    """A second phase has a tenth of the rate."""
    weights = {"model": "VGG16", "weights": "w.h5"} if settings else {}
    assert plan_phases(TrainingConfig(**settings, **weights), epochs) == expected


# settings; the rate at the steps 0, 5, 10, 15, 20 of two epochs of ten steps
RATES = [
    ({}, [1, 0.8536, 0.5, 0.1464, 0]),
    ({"schedule": "constant"}, [1, 1, 1, 1, 1]),
    ({"schedule": "constant", "warmup_epochs": 1}, [0, 0.5, 1, 1, 1]),
    ({"warmup_epochs": 0.5}, [0, 1, 0.75, 0.25, 0]),
    ({"warmup_epochs": 1, "accumulate": 4}, [0, 0.5, 1, 0.5, 0]),
    ({"warmup_epochs": 9}, [0, 0.25, 0.5, 0.75, 1]),
]


@pytest.mark.parametrize(("settings", "expected"), RATES)
def test_rates_rise_while_training_warms_up(settings, expected):
    """Then they follow the schedule."""
    rates = learning_rates(TrainingConfig(**settings), 1.0, epochs=2, steps=10)
    assert [float(rates(at)) for at in range(0, 21, 5)] == pytest.approx(expected, abs=1e-4)


class TwoParts(OneImageLabel):
    """A trainer whose model has tiny pretrained layers."""

    def models(self):
        flat, normal = keras.layers.Flatten(), keras.layers.BatchNormalization()
        backbone = keras.Sequential([flat, keras.layers.Dense(4), normal])
        inputs = keras.Input((8, 8, 3))
        outputs = keras.layers.Dense(3, activation="softmax")(backbone(inputs))
        model = keras.Model(inputs, outputs)
        return Models(model, model, backbone)


@pytest.fixture
def fit(examples, tmp_path):
    """Fit a tiny model; return its weights before, after each epoch, and at the end."""

    def run(validation=None, **settings):
        config = TrainingConfig(model="VGG16", weights="w.h5", image_size=(8, 8), **settings)
        task = TwoParts(examples, "train", read_dataset(examples), config)
        models = task.models()
        found = [models.trained.get_weights()]
        see = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: found.append(models.trained.get_weights())
        )
        Fitting(
            trainer=task,
            models=models,
            steps=1,
            epochs=config.epochs,
            validation=validation,
            callbacks=[see],
            replicas=find_replicas(),
            folder=str(tmp_path),
        ).run()
        return [*found, models.trained.get_weights()]

    return run


def test_pretrained_layers_are_frozen_first(fit):
    """Only the last layer moves until they are freed; normalisation keeps its statistics."""
    before, frozen, free, _ = fit(epochs=2, frozen_epochs=1)
    assert are_equal(before, frozen) == [True] * 6 + [False] * 2
    assert are_equal(frozen, free) == [False] * 2 + [True] * 4 + [False] * 2


def test_gradients_add_up_to_the_last_step(fit):
    """Weights move after each ``accumulate`` steps, and after the last one."""
    epochs = fit(epochs=4, accumulate=2)
    are_same = [all(are_equal(one[-2:], other[-2:])) for one, other in itertools.pairwise(epochs)]
    assert are_same == [True, False, True, False, True]  # the last: after the last epoch


def test_kernels_decay_but_not_levels(fit, monkeypatch):
    """A decay of 1 / rate leaves kernels their last step, and a BatchNormalization its gamma."""
    monkeypatch.setattr(TwoParts, "weight_decay", 1000.0)
    *_, (kernel, _, gamma, *_) = fit(epochs=1, schedule="constant", learning_rate=1e-3)
    assert abs(kernel).max() < 0.01 < 0.9 < gamma.min()


def test_the_best_weights_are_kept(fit, examples):
    """Training stops after ``patience`` worse epochs and goes back."""
    data = eval_dataset(examples, batch_size=15, image_size=(8, 8))
    # The more the model learns, the higher its loss on wrong labels.
    wrong = data.map(lambda images, labels: (images, (labels + 1) % 3))
    epochs = dict(epochs=9, schedule="constant", learning_rate=0.1, patience=2)
    _, best, *worse, end = fit(wrong, **epochs)
    assert len(worse) == 2
    assert all(are_equal(best, end))
    assert not all(are_equal(worse[-1], end))


def are_equal(some, others):
    """Return whether the arrays of each pair are equal."""
    return [bool((one == other).all()) for one, other in zip(some, others, strict=True)]


# settings, arguments of reading for training
READING = [
    ({"colour": 0.1}, {"augment": COLOURED}),
    ({"class_weights": "balanced"}, {"augment": None, "weights": "balanced"}),
]


@pytest.mark.parametrize(("settings", "expected"), READING)
def test_colours_and_weights_are_changed_by_reading(examples, settings, expected):
    """Settings of the training become options of reading."""
    trainer = trainer_of(examples, **settings, augment="none")
    assert trainer.training == {"resize": "stretch", **expected}


# settings, the trainer, the error
OTHER_TASKS = [
    ({"class_weights": "balanced"}, ManyImageLabels, r"class_weights.*'balanced'"),
    ({"augment": "photo"}, OneTextLabel, r"augment.*'photo'"),
    ({"colour": 0.1}, OneTextLabel, "colour"),
    ({"model": "VGG16"}, ObjectDetector, r"model.*'VGG16'"),
    ({"model": "VGG16"}, EntityTagger, r"model.*'VGG16'"),
    ({"model": "VGG16"}, VideoTrainer, r"model.*'VGG16'"),
    ({"scale": "0..255"}, OneTextLabel, r"scale.*'0\.\.255'"),
]


@pytest.mark.parametrize(("settings", "trainer", "message"), OTHER_TASKS)
def test_a_setting_of_another_task_is_refused(examples, settings, trainer, message):
    """It would have no effect."""
    dataset = read_dataset(examples)
    with pytest.raises(UsageError, match=message):
        trainer(examples, "train", dataset, TrainingConfig(**settings)).check_settings()


def test_a_backbone_loads_its_own_weights_from_a_file(tmp_path, monkeypatch):
    """Weights of another model are our error."""

    def built(layers, **settings):
        def backbone(*, input_shape, weights, **more):
            dense = [keras.layers.Dense(4) for _ in range(layers)]
            model = keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), *dense])
            if weights is not None:
                model.load_weights(weights)
            return model

        monkeypatch.setattr(keras.applications, "VGG16", backbone)  # Keras's own takes seconds
        config = TrainingConfig(model="VGG16", image_size=(32, 32), **settings)
        return backbone_of(build_model(config, 3, "softmax"))

    path = str(tmp_path / "vgg.weights.h5")
    random = built(1)
    random.save_weights(path)
    assert all(are_equal(built(1, weights=path).get_weights(), random.get_weights()))
    with pytest.raises(UsageError):
        built(2, weights=path)
