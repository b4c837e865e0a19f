"""The settings of a training, decoded once from TFX's ``custom_config``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from recordgen.errors import DataError, UsageError
from recordgen.options import check_image_size
from recordgen.reading.scales import AUTO, BACKBONES, PixelScale, scale_of
from recordgen.tasks import (
    Declared,
    ImageClassification,
    ImageMultiLabel,
    ObjectDetection,
    Tabular,
    TextClassification,
    TextEntities,
    TextMultiLabel,
    TextSentiment,
    VideoClassification,
)

#: The tasks that have a model; see recordgen.training.learners.
MODEL_TASKS = (
    ImageClassification.name,
    ImageMultiLabel.name,
    ObjectDetection.name,
    TextEntities.name,
    TextClassification.name,
    TextMultiLabel.name,
    TextSentiment.name,
    Tabular.name,
    VideoClassification.name,
    Declared.name,
)

SMALL_CNN = "small_cnn"
# The saved model's signatures and outputs for TFMA; see recordgen.training.serving.
EVALUATE = "evaluate"
SCORES = "scores"
TRUTH = "truth"
LABEL = "label"
WEIGHT = "weight"
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
    if task not in MODEL_TASKS:
        raise DataError(
            f"{root}: there is no model for the task {task!r}, only for {', '.join(MODEL_TASKS)}; "
            f"train one of your own on recordgen.input_fn"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How to train. Every field is a key of ``custom_config``.

    Attributes:
        model: ``small_cnn``, or the name of a model in ``keras.applications`` such as
            ``MobileNetV2``.
        scale: the range of pixels that the model takes; ``auto``: what it was trained on, for
            ``small_cnn`` ``0..1``. The scaling is part of the saved model.
        weights: of a ``keras.applications`` model: None (random) or ``imagenet``, which Keras
            downloads.
        image_size: height and width to which images and frames are resized, in pixels.
        batch_size: examples per step.
        epochs: passes over the ``train`` split; ``TrainArgs(num_steps=…)`` overrules it.
        learning_rate: of Adam, at the start; it falls to 0 along a cosine.
        dropout: share of features dropped before the last layer, 0..1.
        augmentation: shift (of the side), turn (of a full turn) and zoom training images by up to
            this share, 0..1; 0: none.
        seed: of weights, order, dropout and augmentation.
        top_k: labels that the serving signature returns per image, best first.
        frames: of a video's segment so many are looked at, evenly over its time.
    """

    model: str = SMALL_CNN
    weights: str | None = None
    scale: str = AUTO
    image_size: tuple[int, int] = (96, 96)
    batch_size: int = 32
    epochs: int = 10
    learning_rate: float = 1e-3
    dropout: float = 0.2
    augmentation: float = 0.05
    seed: int = 0
    top_k: int = 5
    frames: int = 8

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
