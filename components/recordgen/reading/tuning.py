"""Settings for the speed and memory of reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from recordgen.errors import UsageError
from recordgen.reading.checks import check_at_least, check_one_of, check_range, check_type

#: ``tf.data.AUTOTUNE``, defined here so that options can be decoded without TensorFlow.
AUTOTUNE = -1

#: Let the plan choose: see :func:`recordgen.reading.plan.plan_reading`.
AUTO: Final = "auto"

DECODERS = ("fast", "exact")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Threads and memory of a reading. The defaults suit most machines.

    Attributes:
        shuffle_buffer: records held for shuffling; ``auto``: chosen from their number and size.
        cycle_length: shards read at the same time.
        num_parallel_calls: batches parsed and decoded at the same time.
        prefetch: batches prepared ahead of the model.
        threads: size of the dataset's own thread pool; None: share the process's pool.
        autotune: let tf.data adjust the numbers that are ``AUTOTUNE`` (-1) while it runs. Without
            it, they are tf.data's fixed defaults: one per core, at most 16.
        deterministic: return elements in an order that does not depend on timing; None: only with a
            seed or without shuffling.
        drop_remainder: drop a short last batch, so that all shapes are known.
        cache_bytes: how many bytes a cache may take; None: half of the free memory, or any number
            in a file. Images are kept decoded if all of them fit, see
            :mod:`recordgen.reading.memory`.
        crop_margin: size of the pictures that a cache keeps for ``random_crop``: their largest
            crops are this times ``image_size``, unless a picture is smaller; 1..16.
        decoder: how images are decoded. ``fast`` decodes JPEGs at the smallest scale that covers
            the image size, and takes means of areas, rounded to whole levels; ``exact`` decodes
            every pixel and resizes with antialiasing, in floats.
    """

    shuffle_buffer: int | str = AUTO
    cycle_length: int = AUTOTUNE
    num_parallel_calls: int = AUTOTUNE
    prefetch: int = AUTOTUNE
    threads: int | None = None
    autotune: bool = False
    deterministic: bool | None = None
    drop_remainder: bool = False
    cache_bytes: int | None = None
    crop_margin: float = 1.15
    decoder: str = "fast"

    def __post_init__(self) -> None:
        if self.shuffle_buffer == 0:
            raise UsageError("shuffle_buffer must be at least 1 (got 0); shuffle=False keeps order")
        if self.shuffle_buffer != AUTO:
            check_at_least(1, shuffle_buffer=self.shuffle_buffer)
        for name in ("cycle_length", "num_parallel_calls", "prefetch"):
            if getattr(self, name) != AUTOTUNE:
                check_at_least(1, **{name: getattr(self, name)})
        for name in ("threads", "cache_bytes"):
            if getattr(self, name) is not None:
                check_at_least(1, **{name: getattr(self, name)})
        for name in ("autotune", "drop_remainder"):
            check_type(bool, "True or False", **{name: getattr(self, name)})
        check_range("crop_margin", self.crop_margin, 1, 16)
        if self.deterministic is not None:
            check_type(bool, "True, False or None", deterministic=self.deterministic)
        check_one_of("decoder", self.decoder, DECODERS)
