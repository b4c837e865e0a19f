"""Labels of whole images; and what all trainers of images share.

They share requests, the sizes of images, and the changes of training images.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, islice
from typing import Any, ClassVar, NamedTuple, TypeVar

import keras
import numpy as np
import tensorflow as tf

from recordgen import features
from recordgen.access.scales import AUTO, scale_of
from recordgen.access.shards import find_shards
from recordgen.core.records import RECORDS
from recordgen.reading import parsing_spec
from recordgen.reading.attempts import answered
from recordgen.reading.decoding import ImageDecoder, stored_sizes
from recordgen.reading.levels import scaled
from recordgen.training.config import PHOTO, PIXELS, SCORES, SMALL_CNN
from recordgen.training.learner import LabelTrainer, ManyLabels, OneLabel, Signature, TaskTrainer
from recordgen.training.model import Models, augmented, backbone_of, build_model, predicted
from recordgen.training.progress_log import log_info

_INSIDE = re.compile(r"(?<=[a-z])(?=[A-Z])")  # of TurnLeft

_WORD = re.compile(r"[^\W_](?:[^\W_]|')*")

# More digits are an identifier.
_DIGITS = 4

# A mirrored digit or letter is another one, or none; a mirrored side is the other side.
_CHANGED = (
    {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}
    | {"digit", "digits", "number", "numbers", "letter", "letters", "character", "characters"}
    | {"text", "word", "words", "alphabet", "clock", "clockwise", "counterclockwise"}
    | {"anticlockwise", "cw", "ccw", "left", "right", "leftward", "rightward", "lefthand"}
    | {"righthand", "east", "west", "eastbound", "westbound", "port", "starboard"}
)

# Shards hold examples in random order, so the first records of some are a sample.
_FILES, _RECORDS = 16, 256

#: TensorFlow Serving takes inputs named ``…_bytes`` as base64 in JSON.
IMAGE_BYTES = tf.TensorSpec([None], tf.string, name="image_bytes")

_Trainer = TypeVar("_Trainer", bound="ImageTrainer")


class ImageTrainer(TaskTrainer):
    """The base of trainers of images, whose labels may move with the pixels."""

    request: ClassVar[Sequence[tf.TensorSpec]] = (IMAGE_BYTES,)

    @property
    def settings(self) -> Set[str]:
        return {*super().settings, "augment", "colour"}

    @property
    def reading(self) -> Mapping[str, Any]:
        return {**super().reading, "image_size": self.config.size}

    @property
    def training(self) -> Mapping[str, Any]:
        config = self.config
        colour = dict.fromkeys(("brightness", "contrast", "saturation"), config.colour)
        changes = {"crop": self.crop, "flip": self.mirrors, **colour}
        return {**super().training, "augment": changes if any(changes.values()) else None}

    @property
    def mirrors(self) -> bool:
        """Whether training mirrors half of the images."""
        augment = self.config.augment
        return augment == PHOTO or (augment == AUTO and keep_when_mirrored(self.dataset.labels))

    @property
    def crop(self) -> float:
        """The largest share of a side that training cuts off: boxes and masks move with it."""
        return 0.0 if self.config.augment == "none" else self.config.augmentation

    def settled(self: _Trainer) -> _Trainer:
        """Return the trainer with an ``image_size``: the earlier model's, or that of the images."""
        config = super().settled().config
        if config.image_size is None:
            config = replace(config, image_size=self._chosen_size())
        changes = [
            f"moved by up to {config.augmentation:.0%}" if config.moves else "",
            "mirrored in half of the cases" if self.mirrors else "",
        ]
        log_info(
            "images have %d×%d pixels (height×width) in training, and are %s; see image_size and "
            "augment",
            *config.size,
            " and ".join(filter(None, changes)) or "not moved",
        )
        return replace(self, config=config)

    def _chosen_size(self) -> tuple[int, int]:
        size = self.earlier.settings.get("image_size") if self.earlier else None
        if size is None:
            files = [file.path for file in find_shards(self.root, self.split).files]
            size = size_of(self.config.model, sampled_sizes(files))
        height, width = size
        return height, width

    def respond(self, model: keras.Model, *request: tf.Tensor) -> dict[str, tf.Tensor]:
        """``image_bytes`` → the :meth:`answers`, and ``error``."""
        images, error = request_images(request[0], self.config.size)
        return answered(self.answers(model, images), error)

    @abstractmethod
    def answers(self, model: keras.Model, images: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the answers to decoded images, by name."""

    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        return self.image_scores(model, stored_images(records, self.config.size))

    def image_scores(self, model: keras.Model, images: tf.Tensor) -> tf.Tensor:
        """Return ``scores`` of decoded images: of each label, float32 [batch, classes]."""
        return predicted(model, images)

    def more_signatures(self, model: keras.Model) -> Mapping[str, Signature]:
        """``pixels``: decoded images → ``scores``, for explanations and for other runtimes."""
        # As training sees them: RGB from 0 to 1.
        pixels = tf.TensorSpec([None, *self.config.size, 3], tf.float32, name=PIXELS)

        @tf.function(input_signature=[pixels], autograph=False)
        def scores_of(pixels: tf.Tensor) -> dict[str, tf.Tensor]:
            return {SCORES: self.pixel_scores(model, pixels)}

        return {PIXELS: scores_of}

    def pixel_scores(self, model: keras.Model, pixels: tf.Tensor) -> tf.Tensor:
        """Return ``scores`` of the signature ``pixels``."""
        return self.image_scores(model, pixels)


class ImageLabels(ImageTrainer, LabelTrainer):
    """The base of both trainers of images."""

    feature = features.IMAGE_CLASS_TEXT

    @property
    def settings(self) -> Set[str]:
        return {*super().settings, "model", "scale"}

    @property
    def training(self) -> Mapping[str, Any]:
        resize = "random_crop" if self.config.augment == PHOTO else "stretch"
        return {**super().training, "resize": resize}

    @property
    def crop(self) -> float:
        """None: a layer of the trained model moves the pixels."""
        return 0.0

    def models(self) -> Models:
        model = build_model(self.config, len(self.dataset.labels), self.activation)
        pretrained = None if self.config.weights is None else backbone_of(model)
        return Models(augmented(model, self.config), model, pretrained)

    def answers(self, model: keras.Model, images: tf.Tensor) -> dict[str, tf.Tensor]:
        return self.best(self.image_scores(model, images))

    def more_signatures(self, model: keras.Model) -> Mapping[str, Signature]:
        """Add the two by whose names Vertex AI explains answers about images.

        ``xai_preprocess``: ``image_bytes`` → ``pixels``; ``xai_model`` is ``pixels``.
        """

        @tf.function(input_signature=self.request, autograph=False)
        def decode(image_bytes: tf.Tensor) -> dict[str, tf.Tensor]:
            return {PIXELS: request_images(image_bytes, self.config.size)[0]}

        found = super().more_signatures(model)
        return {**found, "xai_preprocess": decode, "xai_model": found[PIXELS]}


class OneImageLabel(ImageLabels, OneLabel):
    """One label per image."""


class ManyImageLabels(ImageLabels, ManyLabels):
    """Any number of labels per image."""


def keep_when_mirrored(labels: Iterable[str]) -> bool:
    """Return whether no label looks like a digit, a letter, a text or a side.

    ``daisy``, ``n02085620-Chihuahua`` → true; ``7``, ``class 3``, ``B``, ``seven``, ``TurnLeft`` →
    false: a label with a number may stand for that number.
    """
    words = (word for label in labels for word in _WORD.findall(_INSIDE.sub(" ", label)))
    return not any(map(_changes, words))


def _changes(word: str) -> bool:
    digits = sum(map(str.isdecimal, word))
    return 0 < digits <= _DIGITS or len(word) == 1 or word.lower() in _CHANGED


class _Range(NamedTuple):
    """The sides of a network's images: multiples of a number of pixels."""

    least: int
    most: int
    multiple: int


# Small networks halve images until sides are below 8 pixels. Those of keras.applications halve them
# five times, refuse less than 32 to 75 pixels, and were designed for 224 or more.
_SMALL = _Range(32, 96, 8)
_LARGE = _Range(96, 224, 32)


def sampled_sizes(files: Sequence[str]) -> list[tuple[int, int]]:
    """Return height and width of some images in shards, in pixels. Raises: RecordError."""
    some = files[:: -(-len(files) // _FILES) or 1]
    each = -(-_RECORDS // max(1, len(some)))
    records = list(chain.from_iterable(islice(RECORDS.read(file), each) for file in some))
    if not records:
        return []
    sides = features.IMAGE_HEIGHT, features.IMAGE_WIDTH
    parsed = tf.io.parse_example(tf.constant(records), parsing_spec(sides))
    heights, widths = (parsed[side].numpy().tolist() for side in sides)
    return [size for size in zip(heights, widths, strict=True) if min(size) > 0]


def size_of(model: str, sizes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return height and width for a model: the medians of ``sizes``, rounded and limited.

    32×32 and 500×375 pixels become 32×32 and 96×96 for ``small_cnn``, and 96×96 and 224×224 for
    a model in keras.applications. Without sizes, images have 96×96 pixels.
    """
    known = list(sizes) or [(96, 96)]
    least, most, multiple = _SMALL if model == SMALL_CNN else _LARGE
    height, width = (
        min(most, max(least, multiple * round(float(side) / multiple)))
        for side in np.median(known, axis=0)
    )
    return height, width


def stored_images(records: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
    """Return the images of serialised records (string [batch]) as in training, in [0, 1]."""
    spec = parsing_spec([features.IMAGE_ENCODED, features.IMAGE_HEIGHT, features.IMAGE_WIDTH])
    # Records of other tools may hold the image only.
    spec[features.IMAGE_FORMAT] = tf.io.FixedLenFeature((), tf.string, "")
    parsed = tf.io.parse_example(records, spec)
    sizes, is_raw = stored_sizes(
        lambda part: parsed[f"image/{part}"], are_checked=False, has_raw=True
    )
    pixels = ImageDecoder(image_size).decode(parsed[features.IMAGE_ENCODED], sizes, is_raw=is_raw)
    return scaled(pixels, scale_of(AUTO))


def request_images(encoded: tf.Tensor, image_size: tuple[int, int]) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the images of a request (string [batch]) as in training, in [0, 1].

    Returns:
        float32 [batch, height, width, 3], and string [batch]: why an image is bad, or "".
    """
    pixels, error = ImageDecoder(image_size).attempt(encoded)
    return scaled(pixels, scale_of(AUTO)), error
