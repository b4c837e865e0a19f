"""The settings of a training, decoded once from TFX's ``custom_config``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from recordgen.access.scales import AUTO, BACKBONES, PixelScale, scale_of
from recordgen.core.image_settings import image_size_of
from recordgen.errors import DataError, UsageError, check_at_least, check_names, check_one_of
from recordgen.options import Option, declared_options, option
from recordgen.registry import TASKS

# Keys of TFX's Trainer for Vertex AI, and of KerasTuner's Hyperband, between those of settings.
_OTHER_PREFIXES = ("ai_platform_", "tuner/")
SMALL_CNN = "small_cnn"
EPOCHS = 10  # by default, of many examples
RATE = 1e-3  # of learning, by default
IMAGENET = "imagenet"
# Values of ``augment``.
PHOTO = "photo"
DRAWING = "drawing"
FLOAT32 = "float32"
BALANCED = "balanced"
# Variables of a custom job of Vertex AI: where the model, checkpoints and TensorBoard's logs go.
MODEL_DIR = "AIP_MODEL_DIR"
CHECKPOINT_DIR = "AIP_CHECKPOINT_DIR"
LOG_DIR = "AIP_TENSORBOARD_LOG_DIR"
# Settings that do not change the trained model.
CHECKPOINT_SETTINGS = ("checkpoint_dir", "checkpoint_minutes")
# The saved model's signatures and outputs for TFMA; see recordgen.training.saving.
EVALUATE = "evaluate"
SCORES = "scores"
TRUTH = "truth"
PIXELS = "pixels"  # decoded images, which other runtimes can take
LABEL = "label"
WEIGHT = "weight"
UNKNOWN = "unknown"  # labels that the model does not know
KNOWN = "known"  # some that it knows, for an error
# Names of metrics in Keras's logs and TFMA's results.
ACCURACY = "accuracy"
AUC = "auc"
MEAN_PRECISION = "map"  # mean average precision
MEAN_IOU = "mean_iou"  # of the classes of pixels
F1 = "f1"
TABLE_SCORE = "score"  # accuracy of classes, R² of numbers
R2 = "r2"
RMSE = "rmse"  # root of the mean squared error


def check_task(task: str, root: object) -> None:
    """Check that there is a model for the task of the dataset in ``root``. Raises: DataError."""
    if task not in TASKS or TASKS[task].trainer is None:
        raise DataError(
            f"{root}: there is no model for the task {task!r}; train your own model with "
            f"recordgen.input_fn"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """The settings of a training. Every field is a key of ``custom_config``.

    Attributes:
        model: `small_cnn`, or the name of a model in keras.applications such as `MobileNetV2`.
        weights: pretrained weights of a model in keras.applications: the path or URL of a `.h5`
            file that Keras saved without the last layers; `imagenet`: Keras downloads it.
        scale: range of the model's input pixels, such as `0..1`; scaling is part of the saved
            model; `auto`: the range that the model was trained on.
        image_size: height and width in pixels to which images are resized.
        batch_size: examples per step, at most those of split train.
        epochs: passes over split train; a number of steps overrides it.
        frozen_epochs: train only the last layer for this many of the epochs, then all layers with
            `fine_tune_rate`; needs `weights`.
        learning_rate: rate of Adam after `warmup_epochs`.
        fine_tune_rate: rate of Adam for pretrained weights, after `frozen_epochs`.
        schedule: `cosine`: the rate falls to 0 along a cosine; `constant`: it stays.
        warmup_epochs: the rate first rises from 0 over this many epochs, such as `0.5`, and again
            after `frozen_epochs`.
        accumulate: batches whose gradients are averaged for one update of the weights.
        patience: stop after this many epochs without a lower loss on split eval, and keep the
            weights of the best epoch.
        class_weights: `balanced`: in the loss, all classes have the same weight in total, however
            rare; only for one label per example.
        precision: `mixed_float16` (GPUs) and `mixed_bfloat16` (TPUs, newer CPUs) compute with 16
            bits; the saved model computes with 32.
        dropout: share of features dropped in training, from 0 to below 1.
        augment: `auto`: shift training images by `augmentation`, and mirror half of them unless a
            label looks like a digit, a letter or a side; `photo`: train on random windows of 8 to
            100 % of an image, and mirror half of them; `drawing`: shift, turn and zoom by
            `augmentation`, never mirror; `none`.
        augmentation: shift (of the side), and turn (of a full turn) and zoom drawings, by up to
            this share, from 0 to below 1; 0: none.
        colour: change brightness, contrast and saturation of training images by up to this share,
            from 0 to below 1; 0: keep colours, because they may be the label.
        seed: decides weights, order, dropout, augmentation; below 2^32.
        top_k: labels, or boxes, in an answer of the serving signature, best first.
        frames: frames used from each video segment, evenly spaced in time.
        checkpoint_dir: folder or URL for checkpoints, from which a training that was killed
            resumes.
        checkpoint_minutes: minutes between two checkpoints; 0: after each step.
    """

    model: str = option(SMALL_CNN, metavar="NAME", heading="training")
    weights: str | None = option(None, metavar="FILE", unset="random weights")
    scale: str = option(AUTO, metavar="RANGE")
    image_size: tuple[int, int] | None = option(
        None,
        metavar="H W",
        unset="the median height and width of the images, from 32 to 96; for models in "
        "keras.applications from 96 to 224",
    )
    batch_size: int = option(32, metavar="N")
    epochs: int | None = option(
        None,
        metavar="N",
        unset="10; for few examples up to 200, to make 300 steps, or 60 for tables, to make 2,000",
    )
    frozen_epochs: int = option(0, metavar="N")
    learning_rate: float | None = option(
        None, metavar="RATE", unset="0.001; for tables, boxes and masks 0.003"
    )
    fine_tune_rate: float = option(1e-4, metavar="RATE")
    schedule: str = option("cosine", choices=("cosine", "constant"))
    warmup_epochs: float = option(0.0, metavar="N")
    accumulate: int = option(1, metavar="N")
    patience: int | None = option(
        None, metavar="N", unset="10 for tables with a split eval, else all epochs are trained"
    )
    class_weights: str = option("none", choices=("none", BALANCED))
    precision: str = option(FLOAT32, choices=(FLOAT32, "mixed_float16", "mixed_bfloat16"))
    dropout: float = option(0.2, metavar="F")
    augment: str = option(AUTO, choices=(AUTO, PHOTO, DRAWING, "none"))
    augmentation: float = option(0.05, metavar="F")
    colour: float = option(0.0, metavar="F")
    seed: int = option(0, metavar="N")
    top_k: int = option(5, metavar="N")
    frames: int = option(8, metavar="N")
    checkpoint_dir: str = option(
        "", metavar="DIR", unset="`AIP_CHECKPOINT_DIR`, or else `checkpoints` next to the logs"
    )
    checkpoint_minutes: float = option(10.0, metavar="N")

    def __post_init__(self) -> None:
        if self.image_size is not None:
            object.__setattr__(self, "image_size", image_size_of(self.image_size))
        for each in TRAINING_OPTIONS.values():
            check_value(each, getattr(self, each.name))
        for name in ("batch_size", "epochs", "top_k", "frames", "accumulate"):
            if (value := getattr(self, name)) is not None:
                check_at_least(1, **{name: value})
        for name in ("learning_rate", "fine_tune_rate"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{name} must be above 0 (got {value})")
        for name, end in {"dropout": 1, "augmentation": 1, "colour": 1, "seed": 1 << 32}.items():
            if not 0 <= (value := getattr(self, name)) < end:
                raise UsageError(f"{name} must be from 0 to below {end} (got {value})")
        for name in ("frozen_epochs", "warmup_epochs", "patience", "checkpoint_minutes"):
            if (getattr(self, name) or 0) < 0:
                raise UsageError(f"{name} must not be negative (got {getattr(self, name)})")
        self._check_weights()
        self._check_scale()

    def _check_weights(self) -> None:
        if self.weights == "":
            raise UsageError("weights must name a file (got ''); omit it for random weights")
        if self.weights is not None and self.model == SMALL_CNN:
            raise UsageError(f"model={SMALL_CNN} has no pretrained weights: omit weights")
        if self.frozen_epochs and self.weights is None:
            raise UsageError(
                f"frozen_epochs={self.frozen_epochs} needs weights: all layers but the last would "
                f"be frozen at random values"
            )
        if self.frozen_epochs > (epochs := self.epochs or EPOCHS):
            raise UsageError(
                f"frozen_epochs must not be above epochs, {epochs} (got {self.frozen_epochs})"
            )

    @property
    def size(self) -> tuple[int, int]:
        """The height and width of images, if the data do not decide about them."""
        return self.image_size or (96, 96)

    @property
    def moves(self) -> bool:
        """Whether training moves the pixels of an image, by up to ``augmentation``."""
        return self.augment in (AUTO, DRAWING) and self.augmentation > 0

    @property
    def pixel_scale(self) -> PixelScale:
        """The range of the model's input pixels."""
        if self.scale == AUTO and self.model in BACKBONES:
            return BACKBONES[self.model]
        return scale_of(self.scale)

    def _check_scale(self) -> None:
        if self.pixel_scale != BACKBONES.get(self.model, self.pixel_scale):
            raise UsageError(
                f"scale={self.scale!r} is not the range of pixels that model={self.model} was "
                f"trained on: omit scale, or set scale={self.model!r}"
            )

    @classmethod
    def from_custom_config(cls, values: Mapping[str, Any] | None) -> TrainingConfig:
        """Build a config from ``fn_args.custom_config``; missing keys have their defaults.

        Keys of Vertex AI and KerasTuner are ignored.

        ``{"image_size": [32, 32], "epochs": 3}`` →
        ``TrainingConfig(image_size=(32, 32), epochs=3)``

        Raises: UsageError: a key is unknown, or a value is not allowed.
        """
        given = {
            name: value
            for name, value in (values or {}).items()
            if not str(name).startswith(_OTHER_PREFIXES)
        }
        check_names(given, [field.name for field in fields(cls)])
        return cls(**given)

    def to_custom_config(self) -> dict[str, Any]:
        """Return the config as a ``custom_config`` of JSON values."""
        return {**asdict(self), "image_size": self.image_size and list(self.image_size)}


def check_value(setting: Option, value: object) -> None:
    """Check a value's type, and that it is one of the choices. Raises: UsageError."""
    name = setting.name
    is_size = setting.metavar == "H W"  # which is checked before
    if is_size or (value is None and setting.default is None):
        return
    if setting.choices:
        check_one_of(name, value, setting.choices)
    if setting.kind is int and not (isinstance(value, int) and not isinstance(value, bool)):
        raise UsageError(f"{name} must be a whole number (got {value!r})")
    if setting.kind is float:
        if isinstance(value, bool) or not (isinstance(value, int | float) and math.isfinite(value)):
            raise UsageError(f"{name} must be a number (got {value!r})")
    elif setting.kind is str and not isinstance(value, str):
        raise UsageError(f"{name} must be a text (got {value!r})")


#: All settings of a training, in the order of documentation.
TRAINING_OPTIONS = declared_options(TrainingConfig)
