"""Encoded images → pixels of one size, decoding no more than needed.

    window   the part of the image to show, in pixels of the image   (crops only)
    scale    JPEG: the smallest of 1, 1/2, 1/4, 1/8 at which the window still covers the size
    decode   JPEG: only the window, at that scale; other formats: the whole image, then cut
    resize   to the size: means of areas if it is smaller, bilinear if it is larger; to whole levels

Images that already have the size are only decoded. A batch of raw pixels of that size is copied
once and not decoded at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import tensorflow as tf

from recordgen.core.dataset.counts import ImageStats
from recordgen.errors import UsageError
from recordgen.features import RAW, RAW_CHANNELS
from recordgen.reading.attempts import attempted
from recordgen.reading.augmentation import (
    Changes,
    center_window,
    changed,
    crop_view,
    fit_view,
    fitted_window,
    random_window,
    scaled_window,
)
from recordgen.reading.levels import to_uint8, typed
from recordgen.reading.options import AUTO, ReadOptions, Tuning, decode_options

#: For functions without Python branches or loops on tensors. AutoGraph searches the source of all
#: called functions for these, which takes most of the time of building a dataset.
as_written: Any = tf.autograph.experimental.do_not_convert

# The scales of libjpeg's decoder: 1 / ratio.
_RATIOS = (1, 2, 4, 8)

#: Part of the names of files that cache decoded images. Change it whenever the same options begin
#: to give different pixels.
PIXELS_VERSION = 3

#: The most pixels of an image in a request: as many as a conversion accepts.
MOST_PIXELS = 100_000_000

# The first two bytes of the formats that TensorFlow decodes; the bytes of a PNG up to its size.
_HEADS = [b"\xff\xd8", b"\x89P", b"GI", b"BM", b"RI"]
_PNG_HEAD = 24

# Why an image in a request is bad.
_EMPTY = "there are no bytes"
_UNKNOWN = "the bytes are not an image file that TensorFlow decodes"
_UNDECODED = f"TensorFlow cannot decode the image: damaged, or more than {MOST_PIXELS:,} pixels"

# Formats that the kernel of ``tf.io.decode_jpeg`` decodes.
_ONE_KERNEL = {"jpeg", "png"}


@dataclass(frozen=True, slots=True)
class ImageDecoder:
    """A decoder of batches of images; see :class:`recordgen.reading.options.ReadOptions`.

    Attributes:
        image_size: height and width of the returned images, in pixels.
        resize: ``stretch``, ``fit``, ``center_crop`` or ``random_crop``.
        decoder: ``fast`` or ``exact``.
        images: properties that all images share; None if unknown.
    """

    image_size: tuple[int, int]
    resize: str = "stretch"
    decoder: str = "fast"
    images: ImageStats | None = None

    @as_written
    def decode(
        self,
        encoded: tf.Tensor,
        sizes: tf.Tensor | None = None,
        seed: tf.Tensor | None = None,
        is_raw: tf.Tensor | None = None,
        changes: Changes | None = None,
    ) -> tf.Tensor:
        """Decode a batch.

        Args:
            encoded: string [batch], JPEG, PNG, GIF (first frame) or BMP files of any size, and
                WEBPs if TensorFlow decodes them; or raw pixels.
            sizes: int64 [batch, 2], heights and widths; None: read them from each image.
            seed: int64 [2], for ``random_crop``.
            is_raw: bool [batch], whether an image is raw pixels, which need ``sizes``; None: all
                are if ``images`` has only that format, else none.
            changes: the changes of each image, applied after resizing; None for no changes.

        Returns:
            uint8 [batch, height, width, 3], RGB; float32 from 0 to 255 if the decoder is ``exact``
            and resizes, without changes.

        Raises:
            tf.errors.InvalidArgumentError: bytes are not such an image.
        """
        # If all images are alike, decide once: each step takes a large share of a small image.
        if self._are_ready():
            return self._ready(encoded, changes)
        ratio = self._common_ratio()
        decode = self._decoded if ratio is None else partial(self._at, ratio)
        count = tf.shape(encoded)[0]
        known = tf.zeros((count, 2), tf.int64) if sizes is None else sizes
        items = (encoded, known, _draws(count, seed), *([] if is_raw is None else [is_raw]))
        dtype = tf.float32 if self.decoder == "exact" else tf.uint8
        return self._each(lambda item: self._resized(decode(*item)), items, changes, dtype)

    @as_written
    def attempt(
        self,
        encoded: tf.Tensor,
        sizes: tf.Tensor | None = None,
        is_raw: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Decode a batch as :meth:`decode` does; return zeros for an image that is bad, and why.

        Returns:
            uint8 [batch, height, width, 3], and string [batch], "" for a good image.
        """

        def decode(is_small: tf.Tensor, *image: tf.Tensor) -> tf.Tensor:
            with tf.control_dependencies([_check(is_small)]):
                return self._decoded(
                    **dict(zip(names, image, strict=True)), most_pixels=MOST_PIXELS
                )

        def reasons() -> tf.Tensor:
            is_known = tf.reduce_any(tf.strings.substr(encoded, 0, 2)[:, None] == _HEADS, 1)
            why = tf.where(is_known, _UNDECODED, tf.where(encoded == "", _EMPTY, _UNKNOWN))
            return tf.where(is_good, "", why)

        given = {"data": encoded, "size": sizes, "is_raw": is_raw}
        names = [name for name, each in given.items() if each is not None]
        pixels, is_good = attempted(
            decode,
            (_png_pixels(encoded) <= MOST_PIXELS, *map(given.get, names)),
            tf.TensorSpec((*self.image_size, 3), tf.uint8),
            lambda decoded: to_uint8(self._resized(decoded)),
        )
        none = partial(tf.fill, [tf.shape(encoded)[0]], "")
        return pixels, tf.cond(tf.reduce_all(is_good), none, reasons)

    def _each(
        self,
        make: Callable[[Any], tf.Tensor],
        items: Any,
        changes: Changes | None,
        dtype: tf.DType = tf.uint8,
    ) -> tf.Tensor:
        """Make the pixels of each item, and change them while the processor's cache holds them.

        Changed pixels are uint8; others are of ``dtype``, uint8 or float32.
        """
        changes = changes or Changes()
        is_whole = bool(changes) or dtype == tf.uint8

        def one(item: tuple[Any, Changes]) -> tf.Tensor:
            pixels = make(item[0])
            return changed(pixels, item[1]) if is_whole else pixels

        spec = tf.TensorSpec((*self.image_size, 3), tf.uint8 if is_whole else dtype)
        return tf.map_fn(one, (items, changes), fn_output_signature=spec)

    def changed(self, images: tf.Tensor, changes: Changes) -> tf.Tensor:
        """Change images (uint8 [batch, height, width, 3]) of the decoder's size."""
        return self._each(lambda image: image, images, changes)

    @property
    def are_raw(self) -> bool:
        """Whether all images are raw pixels."""
        return self.images is not None and set(self.images.formats) == {RAW}

    def _are_ready(self) -> bool:
        """Return whether all images have the size and a format that one kernel decodes."""
        height, width = self.image_size
        return (
            self.images is not None
            and self.resize != "random_crop"
            and self.images.height == (height, height)
            and self.images.width == (width, width)
            and (self.are_raw or set(self.images.formats) <= _ONE_KERNEL)
        )

    def _common_ratio(self) -> int | None:
        """Return the ratio that suits all images; None if it depends on the image."""
        if self.images is None or self.decoder != "fast":
            return None
        (low, high), (narrow, wide) = self.images.height, self.images.width
        ratio = self._ratio(high, wide)
        least = 1 if self.resize == "random_crop" else self._ratio(low, narrow)
        is_whole = self.resize in ("stretch", "fit")
        formats = _ONE_KERNEL if is_whole and ratio == 1 else {"jpeg"}
        return ratio if least == ratio and set(self.images.formats) <= formats else None

    def _ratio(self, height: int, width: int) -> int:
        """Return the largest ratio at which an image still covers the size."""
        times = (height // self.image_size[0], width // self.image_size[1])
        # With ``fit``, one side is as long as the target's and the other is shorter.
        tight = max(times) if self.resize == "fit" else min(times)
        return max(ratio for ratio in _RATIOS if ratio <= max(tight, 1))

    def _ready(self, encoded: tf.Tensor, changes: Changes | None) -> tf.Tensor:
        """Decode JPEGs and PNGs, or raw pixels, that already have the size."""
        if self.are_raw:
            pixels = tf.io.decode_raw(encoded, tf.uint8)
            pixels = tf.reshape(pixels, (-1, *self.image_size, RAW_CHANNELS))
            pixels = tf.ensure_shape(pixels, (*encoded.shape, None, None, None))
            return self.changed(pixels, changes) if changes else pixels

        def decode(data: tf.Tensor) -> tf.Tensor:
            return tf.ensure_shape(self._jpeg(data, None, 1), (*self.image_size, 3))

        if changes:
            return self._each(decode, encoded, changes)
        # A call for each image: the steps of a loop take as long as decoding a small one.
        one = tf.function(decode, [tf.TensorSpec((), tf.string)], autograph=False)
        return tf.raw_ops.MapDefun(
            arguments=[encoded],
            captured_inputs=[],
            output_types=[tf.uint8],
            output_shapes=[(*self.image_size, 3)],
            f=one.get_concrete_function(),
            max_intra_op_parallelism=1,
        )[0]

    def _at(self, ratio: int, data: tf.Tensor, size: tf.Tensor, draw: tf.Tensor) -> tf.Tensor:
        """Decode one JPEG of known size, or its window, at a known scale."""
        return self._jpeg(data, self._window(tf.cast(size, tf.int32), draw), ratio)

    def views(
        self,
        encoded: tf.Tensor,
        sizes: tf.Tensor,
        seed: tf.Tensor | None = None,
        is_raw: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Return the part of each image that :meth:`decode` shows for the same arguments.

        Returns:
            float32 [batch, 4], see :mod:`recordgen.reading.augmentation`.
        """
        sizes = tf.cast(sizes, tf.int32)
        window = self._window(sizes, _draws(tf.shape(sizes)[0], seed))
        whole = tf.concat([tf.zeros_like(sizes), sizes], 1)
        if self.decoder == "exact" or self.are_raw:
            shown = pixels = whole if window is None else window
        else:
            is_jpeg = _are_jpegs(encoded)
            if is_raw is not None:
                is_jpeg &= ~is_raw
            wanted = whole if window is None else window
            ratio = tf.gather(_RATIOS, self.ratio_index(wanted[:, 2:]))
            ratio = tf.where(is_jpeg, ratio, 1)[:, None]
            # A scaled image's last row and column may represent fewer pixels than the others.
            pixels = -(-whole // ratio) if window is None else scaled_window(window, ratio)
            shown = pixels * ratio
        view = crop_view(shown, sizes)
        return fit_view(view, pixels[:, 2:], self.image_size) if self.resize == "fit" else view

    def _decoded(
        self,
        data: tf.Tensor,
        size: tf.Tensor | None = None,
        draw: tf.Tensor | None = None,
        is_raw: tf.Tensor | None = None,
        most_pixels: int | None = None,
    ) -> tf.Tensor:
        """Decode one image, or its window.

        A ``size`` of None or (0, 0) is read from the image, which must not be raw. A JPEG must not
        have more than ``most_pixels``.
        """

        def read_size() -> tf.Tensor:
            return tf.io.extract_jpeg_shape(data)[:2]

        def jpeg() -> tf.Tensor:
            shape = (
                read_size()
                if size is None
                else tf.cond(size[0] > 0, lambda: tf.cast(size, tf.int32), read_size)
            )
            if most_pixels is not None:
                pixels = tf.reduce_prod(tf.cast(shape, tf.int64))
                with tf.control_dependencies([_check(pixels <= most_pixels)]):
                    shape = tf.identity(shape)
            window = self._window(shape, draw)
            if self.decoder == "exact":
                return self._jpeg(data, window, 1)
            return tf.switch_case(
                self.ratio_index(shape if window is None else window[2:]),
                [lambda ratio=ratio: self._jpeg(data, window, ratio) for ratio in _RATIOS],
            )

        def other() -> tf.Tensor:
            image = tf.io.decode_image(data, channels=3, expand_animations=False)
            image.set_shape((None, None, 3))  # decode_image does not set a shape
            return _cut(image, self._window(tf.shape(image)[:2], draw))

        def raw() -> tf.Tensor:
            known: Any = size
            shape = (known[0], known[1], RAW_CHANNELS)
            pixels = tf.reshape(tf.io.decode_raw(data, tf.uint8), shape)
            return _cut(pixels, self._window(tf.cast(known, tf.int32), draw))

        def in_a_file() -> tf.Tensor:
            return tf.cond(_are_jpegs(data), jpeg, other)

        if self.are_raw:
            pixels = raw()
        else:
            pixels = in_a_file() if is_raw is None else tf.cond(is_raw, raw, in_a_file)
        pixels.set_shape((None, None, 3))
        return pixels

    def _jpeg(self, data: tf.Tensor, window: tf.Tensor | None, ratio: int) -> tf.Tensor:
        """Decode a JPEG or its window at the scale 1 / ratio; the kernel also decodes PNGs."""
        if self.decoder == "exact":
            # Decode the whole image: chroma at the edge of a window needs its neighbours.
            return _cut(tf.io.decode_jpeg(data, channels=3), window)
        if window is None:
            return tf.io.decode_jpeg(data, channels=3, ratio=ratio)
        # The decoder expects the window in pixels of the scaled image.
        window = scaled_window(window, ratio)
        return tf.io.decode_and_crop_jpeg(data, window, channels=3, ratio=ratio)

    def ratio_index(self, size: tf.Tensor) -> tf.Tensor:
        """Return the index in ``_RATIOS`` (int32 [...]) for sizes (int32 [..., 2])."""
        times = size // tf.constant(self.image_size)
        reduce = tf.reduce_max if self.resize == "fit" else tf.reduce_min
        tight = reduce(times, -1, keepdims=True)
        return tf.reduce_sum(tf.cast(tight >= list(_RATIOS[1:]), tf.int32), -1)

    def _window(self, size: tf.Tensor, draw: tf.Tensor) -> tf.Tensor | None:
        """Return the windows (int32 [..., 4]) of images; None if the whole image is shown."""
        if self.resize == "center_crop":
            return center_window(size, self.image_size)
        if self.resize == "random_crop":
            return random_window(size, self.image_size, draw)
        return None

    def _resized(self, pixels: tf.Tensor) -> tf.Tensor:
        """Resize uint8 [*, *, 3] to [height, width, 3], uint8 or float32."""
        if self.resize != "fit":
            return tf.ensure_shape(self._resize(pixels, self.image_size), (*self.image_size, 3))
        height, width = self.image_size
        start, inner = fitted_window(tf.shape(pixels)[:2], self.image_size)
        top, left = tf.unstack(start)
        pixels = self._resize(pixels, inner)
        if self.decoder != "exact":
            pixels = to_uint8(pixels)  # a quarter of the bytes to pad
        padded = tf.image.pad_to_bounding_box(pixels, top, left, height, width)
        return tf.ensure_shape(padded, (height, width, 3))

    def _resize(self, pixels: tf.Tensor, size: tf.Tensor | tuple[int, int]) -> tf.Tensor:
        if self.decoder == "exact":
            return tf.image.resize(tf.cast(pixels, tf.float32), size, antialias=True)
        return _averaged(pixels, size)


def resize_images(images: tf.Tensor, size: tf.Tensor | tuple[int, int]) -> tf.Tensor:
    """Resize images so that every old pixel counts.

    Along a side that becomes shorter, a new pixel is the weighted mean of the old pixels that it
    covers, so fine patterns never turn into noise. Along a side that becomes longer, pixels are
    interpolated. uint8 [height, width, channels], or a batch, → uint8 [*size, channels].
    """
    return to_uint8(_averaged(images, size))


def _averaged(images: tf.Tensor, size: tf.Tensor | tuple[int, int]) -> tf.Tensor:
    """Resize images as :func:`resize_images` does, to float32."""
    covered = tf.minimum(tf.shape(images)[-3:-1], size)
    # With float32 both kernels take their vectorised path, which is faster even with the cast.
    means = tf.image.resize(tf.cast(images, tf.float32), covered, method="area")
    is_reached = tf.reduce_all(covered == size)
    return tf.cond(is_reached, lambda: means, lambda: tf.image.resize(means, size))


def stored_sizes(
    part: Callable[[str], tf.Tensor], *, are_checked: bool, has_raw: bool
) -> tuple[tf.Tensor | None, tf.Tensor | None]:
    """Return the arguments ``sizes`` and ``is_raw`` of :meth:`ImageDecoder.decode`.

    ``part`` returns a feature of the images by the end of its name: ``height``, ``width``, or
    ``format``, which is needed if images may be raw. Sizes of raw pixels can always be trusted.
    """
    if not (are_checked or has_raw):
        return None, None
    sizes = tf.stack([part("height"), part("width")], 1)
    if not has_raw:
        return sizes, None
    is_raw = part("format") == RAW
    return sizes if are_checked else tf.where(is_raw[:, None], sizes, 0), is_raw


@as_written
def image_sizes(encoded: tf.Tensor, known: tf.Tensor | None = None) -> tf.Tensor:
    """Return heights and widths (int32 [batch, 2]); 0 in ``known``: read it from the image."""

    def read(data: tf.Tensor) -> tf.Tensor:
        return tf.cond(
            _are_jpegs(data),
            lambda: tf.io.extract_jpeg_shape(data)[:2],
            lambda: tf.shape(tf.io.decode_image(data, channels=3, expand_animations=False))[:2],
        )

    def size(item: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        data, found = item
        return tf.cond(found[0] > 0, lambda: tf.cast(found, tf.int32), lambda: read(data))

    if known is None:
        known = tf.zeros((tf.shape(encoded)[0], 2), tf.int64)
    return tf.map_fn(size, (encoded, known), fn_output_signature=tf.TensorSpec((2,), tf.int32))


def _png_pixels(encoded: tf.Tensor) -> tf.Tensor:
    """Return the number of pixels that PNG files (string [batch]) claim; 0 for other files."""
    heads = tf.strings.join([tf.strings.substr(encoded, 0, _PNG_HEAD), bytes(_PNG_HEAD)])
    sizes = tf.strings.substr(heads, _PNG_HEAD - 8, 8)
    sides = tf.cast(tf.io.decode_raw(sizes, tf.int32, little_endian=False), tf.int64)
    is_png = tf.strings.substr(heads, 0, 4) == b"\x89PNG"
    return tf.where(is_png, tf.reduce_prod(sides, 1), 0)


def _check(is_small: tf.Tensor) -> tf.Operation:
    """Return an operation that fails unless ``is_small``; ``tf.debugging`` would add a branch."""
    return tf.raw_ops.Assert(condition=is_small, data=["an image has too many pixels"])


def _are_jpegs(encoded: tf.Tensor) -> tf.Tensor:
    return tf.strings.substr(encoded, 0, 3) == b"\xff\xd8\xff"


def _cut(image: tf.Tensor, window: tf.Tensor | None) -> tf.Tensor:
    if window is None:
        return image
    top, left, height, width = tf.unstack(window)
    return image[top : top + height, left : left + width]


def _draws(count: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
    """Return four random numbers (float32 [count, 4]) for each image; without a seed, zeros."""
    return tf.zeros((count, 4)) if seed is None else tf.random.stateless_uniform((count, 4), seed)


def decode_images(
    encoded: tf.Tensor | Sequence[bytes],
    image_size: int | tuple[int, int] | str,
    *,
    scale: str = AUTO,
    resize: str = "stretch",
    decoder: Literal["fast", "exact"] = "fast",
) -> tf.Tensor:
    """Decode and resize encoded images as training and evaluation do.

    Args:
        encoded: string [batch] or a list of bytes: JPEG, PNG, GIF (first frame) or BMP files of
            any size, and WEBPs if TensorFlow decodes them.
        image_size: height and width of the returned images, in pixels; one number for a square.
        scale: the range of pixels: ``0..1``, ``0..255``, ``-1..1``, or the name of a model in
            ``keras.applications``; ``auto``: ``0..1``.
        resize: ``stretch``, ``fit`` or ``center_crop``; see
            :class:`recordgen.reading.options.ReadOptions`.
        decoder: ``fast`` or ``exact``; see :class:`recordgen.reading.options.Tuning`.

    Returns:
        [batch, height, width, 3], RGB: float32 in [0, 1], or the range and type of ``scale``.

    Raises:
        UsageError: an argument is wrong.
        tf.errors.InvalidArgumentError: bytes are not such an image.
    """
    if resize == "random_crop":
        raise UsageError("resize='random_crop' is for training; serve with 'center_crop'")
    given = {"image_size": image_size, "scale": scale, "resize": resize}
    tuning = Tuning(decoder=decoder)
    options: ReadOptions = decode_options(ReadOptions, {**given, "tuning": tuning})
    pixels = ImageDecoder(options.image_size, resize, decoder).decode(_as_batch(encoded))
    return typed(pixels, *options.pixels)


def _as_batch(encoded: Any) -> tf.Tensor:
    """Return encoded images as string [batch]. Raises: UsageError: they are something else."""
    try:
        images = tf.convert_to_tensor(encoded, tf.string)
        images.shape.assert_has_rank(1)
        return images
    except (TypeError, ValueError) as exc:
        raise UsageError(
            f"encoded must be the bytes of several image files, string [batch] or a list such as "
            f"[open('1.jpg', 'rb').read()] (got {encoded!r:.80})"
        ) from exc
