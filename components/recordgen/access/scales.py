"""The range of pixels that a model expects: one definition for both training and serving.

>>> scale_of("-1..1")
PixelScale(factor=2.0, offset=-1.0, is_bgr=False)
>>> scale_of("MobileNetV2") == scale_of("-1..1")
True

A pretrained network of ``keras.applications`` needs pixels in the range on which it was trained;
with any other range it gives bad answers without an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from recordgen.errors import UsageError, check_one_of

Channels = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class PixelScale:
    """A linear change of RGB pixels from 0 to 1: times ``factor``, plus ``offset``.

    Attributes:
        factor: one number for all channels, or one for each.
        offset: one number for all channels, or one for each.
        is_bgr: whether the result, ``factor`` and ``offset`` have the order blue, green, red.
    """

    factor: float | Channels
    offset: float | Channels = 0.0
    is_bgr: bool = False

    def apply(self, images: Any, *, white: float) -> Any:
        """Scale images.

        Args:
            images: RGB, float [..., 3]: a tensor, or a symbolic tensor of Keras.
            white: the images' value of white, 1 or 255; black is 0.

        Returns:
            The same shape and type.
        """
        import numpy as np

        if self.is_bgr:
            images = images[..., ::-1]
        factor = np.asarray(self.factor, np.float32) / np.float32(white)
        if (factor != 1).any():
            images = images * factor
        return images + np.asarray(self.offset, np.float32) if self.offset else images


_UNIT = PixelScale(1.0)
_LEVELS = PixelScale(255.0)
_SIGNED = PixelScale(2.0, -1.0)
# By means and standard deviations of ImageNet's channels, as the authors of the weights used them.
_CAFFE = PixelScale(255.0, (-103.939, -116.779, -123.68), is_bgr=True)
_TORCH = PixelScale(
    (1 / 0.229, 1 / 0.224, 1 / 0.225), (-0.485 / 0.229, -0.456 / 0.224, -0.406 / 0.225)
)

#: The types of pixels; ``uint8`` has the range 0..255.
DTYPES = ("float32", "float16", "bfloat16", "uint8")

#: The default scale: ``0..1`` for float pixels, ``0..255`` for ``uint8``.
AUTO = "auto"

RANGES: Mapping[str, PixelScale] = {"0..1": _UNIT, "0..255": _LEVELS, "-1..1": _SIGNED}

_FAMILIES = {
    # These models scale by themselves.
    "ConvNeXtBase ConvNeXtLarge ConvNeXtSmall ConvNeXtTiny ConvNeXtXLarge": _LEVELS,
    "EfficientNetB0 EfficientNetB1 EfficientNetB2 EfficientNetB3 EfficientNetB4": _LEVELS,
    "EfficientNetB5 EfficientNetB6 EfficientNetB7": _LEVELS,
    "EfficientNetV2B0 EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3": _LEVELS,
    "EfficientNetV2L EfficientNetV2M EfficientNetV2S": _LEVELS,
    "MobileNetV3Large MobileNetV3Small": _LEVELS,
    "InceptionResNetV2 InceptionV3 MobileNet MobileNetV2 NASNetLarge NASNetMobile": _SIGNED,
    "ResNet50V2 ResNet101V2 ResNet152V2 Xception": _SIGNED,
    "ResNet50 ResNet101 ResNet152 VGG16 VGG19": _CAFFE,
    "DenseNet121 DenseNet169 DenseNet201": _TORCH,
}

#: The models of ``keras.applications``, and the pixels on which their weights were trained.
BACKBONES: Mapping[str, PixelScale] = {
    name: scale for names, scale in _FAMILIES.items() for name in names.split()
}


def scale_of(name: str) -> PixelScale:
    """Return the scale of a range (``"-1..1"``) or of a model of ``keras.applications``.

    Raises: UsageError: the name is unknown.
    """
    known = {**RANGES, AUTO: _UNIT, **BACKBONES}
    if isinstance(name, str) and name in known:
        return known[name]
    by_letters = {key.lower(): key for key in BACKBONES}
    plain = str(name).lower().replace("_", "").replace("-", "")
    close = get_close_matches(plain, by_letters, n=1)
    hint = f"; did you mean {by_letters[close[0]]!r}?" if close else ""
    raise UsageError(
        f"scale must be {', '.join(RANGES)}, or the name of a model in keras.applications, such as "
        f"MobileNetV2 (got {name!r}){hint}"
    )


def parse_scale(text: str) -> tuple[str, str]:
    """Return the range and the type of pixels: ``"-1..1:float16"`` → ``("-1..1", "float16")``.

    Raises: UsageError: one of them is unknown, or they do not fit.
    """
    if not isinstance(text, str):
        raise UsageError(f"scale must be a text (got {text!r})")
    name, _, dtype = text.partition(":")
    if name in DTYPES and not dtype:
        name, dtype = AUTO, name
    dtype = dtype or "float32"
    check_one_of("the type in scale or dtype", dtype, DTYPES)
    scale_for(name, dtype)  # checks both
    return name, dtype


def scale_for(name: str, dtype: str) -> PixelScale:
    """Return the scale for pixels of a type; ``auto`` is 0..1 for floats, 0..255 for ``uint8``.

    Raises: UsageError: the name is unknown, or the scale needs floats and the type is ``uint8``.
    """
    if dtype == "uint8" and name != AUTO and scale_of(name) != _LEVELS:
        raise UsageError(
            f"scale={name!r} needs floats (got 'uint8'); write scale={name!r} alone, or read "
            f"scale='uint8' and scale in the model"
        )
    return _LEVELS if dtype == "uint8" else scale_of(name)
