"""The settings of a training, decoded once from TFX's ``custom_config``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from recordgen.errors import DataError, UsageError
from recordgen.options import check_image_size, declared_options, option
from recordgen.scales import AUTO, BACKBONES, PixelScale, scale_of
from recordgen.tasks import TASKS

SMALL_CNN = "small_cnn"
# The saved model's signatures and outputs for TFMA; see recordgen.training.run.
EVALUATE = "evaluate"
SCORES = "scores"
TRUTH = "truth"
LABEL = "label"
WEIGHT = "weight"
UNKNOWN = "unknown"  # labels that the model does not know
KNOWN = "known"  # some that it knows, for an error
# What models are measured by, as Keras's log and TFMA's results name it.
ACCURACY = "accuracy"
AUC = "auc"
MEAN_PRECISION = "map"  # mean average precision
F1 = "f1"
TABLE_SCORE = "score"  # accuracy of classes, R² of numbers
R2 = "r2"
RMSE = "rmse"  # root of the mean squared error
WEIGHTS = (None, "imagenet")


def check_task(task: str, root: str) -> None:
    """Check that there is a model for the task of the dataset in ``root``. Raises: DataError."""
    if task not in TASKS or TASKS[task].trainer is None:
        raise DataError(
            f"{root}: there is no model for the task {task!r}; train one of your own on "
            f"recordgen.input_fn"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How to train. Every field is a key of ``custom_config``."""

    model: str = option(
        SMALL_CNN,
        "`small_cnn`, or the name of a model in keras.applications such as `MobileNetV2`",
        metavar="NAME",
    )
    weights: str | None = option(
        None,
        "`imagenet`: pretrained weights of a model in keras.applications, which Keras downloads",
        choices=("imagenet",),
        unset="random weights",
    )
    scale: str = option(
        AUTO,
        "range of pixels that the model takes, such as `0..1`, which becomes part of the saved "
        "model; `auto`: the one it was trained on",
        metavar="RANGE",
    )
    image_size: tuple[int, int] = option(
        (96, 96), "height and width in pixels to which images are resized", metavar="H W"
    )
    batch_size: int = option(32, "examples per step", metavar="N")
    epochs: int = option(10, "passes over split train; a number of steps overrules it", metavar="N")
    learning_rate: float = option(
        1e-3, "rate of Adam at the start; it falls to 0 along a cosine", metavar="RATE"
    )
    dropout: float = option(
        0.2, "share of features dropped before the last layer, from 0 to below 1", metavar="F"
    )
    augmentation: float = option(
        0.05,
        "shift (of the side), turn (of a full turn) and zoom training images by up to this share, "
        "from 0 to below 1; 0: none",
        metavar="F",
    )
    seed: int = option(0, "decides weights, order, dropout and augmentation", metavar="N")
    top_k: int = option(
        5, "labels, or boxes, in an answer of the serving signature, best first", metavar="N"
    )
    frames: int = option(
        8, "frames of a video's segment to look at, evenly over its time", metavar="N"
    )

    def __post_init__(self) -> None:
        for name in ("batch_size", "epochs", "seed", "top_k", "frames"):
            if not isinstance(getattr(self, name), int):
                raise UsageError(f"{name} must be a whole number (got {getattr(self, name)!r})")
        for name in ("learning_rate", "dropout", "augmentation"):
            if not isinstance(getattr(self, name), (int, float)):
                raise UsageError(f"{name} must be a number (got {getattr(self, name)!r})")
        check_image_size(self.image_size)
        if self.weights not in WEIGHTS:
            raise UsageError(f"weights must be None or 'imagenet' (got {self.weights!r})")
        if self.weights is not None and self.model == SMALL_CNN:
            raise UsageError(f"model={SMALL_CNN} has no pretrained weights: leave weights unset")
        self._check_scale()
        for name in ("batch_size", "epochs", "top_k", "frames"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1 (got {getattr(self, name)})")
        if not self.learning_rate > 0:
            raise UsageError(f"learning_rate must be above 0 (got {self.learning_rate})")
        for name in ("dropout", "augmentation"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name} must be from 0 to below 1 (got {getattr(self, name)})")

    @property
    def pixel_scale(self) -> PixelScale:
        """The range of pixels that the model takes."""
        if self.scale == AUTO and self.model in BACKBONES:
            return BACKBONES[self.model]
        return scale_of(self.scale)

    def _check_scale(self) -> None:
        if self.pixel_scale != BACKBONES.get(self.model, self.pixel_scale):
            raise UsageError(
                f"model={self.model} was trained on other pixels than scale={self.scale!r} gives: "
                f"leave scale out, or say scale={self.model!r}"
            )

    @classmethod
    def from_custom_config(cls, values: Mapping[str, Any] | None) -> TrainingConfig:
        """Build a config from ``fn_args.custom_config``; what is not given keeps its default.

        ``{"image_size": [32, 32], "epochs": 3}`` →
        ``TrainingConfig(image_size=(32, 32), epochs=3)``

        Raises:
            UsageError: a key is unknown, or a value is not allowed.
        """
        given = dict(values or {})
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(given) - set(known)):
            raise UsageError(
                f"custom_config must only have {', '.join(known)} (got {', '.join(unknown)})"
            )
        size = given.get("image_size")
        if size is not None:
            given["image_size"] = (
                tuple(size) if isinstance(size, list) else (size,)
            )  # no JSON tuple
        return cls(**given)

    def to_custom_config(self) -> dict[str, Any]:
        """Return the config as a ``custom_config`` that JSON can carry."""
        return {**asdict(self), "image_size": list(self.image_size)}


#: Every setting of a training, in the order in which it is shown.
TRAINING_OPTIONS = declared_options(TrainingConfig)
