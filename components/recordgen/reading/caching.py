"""Plan what a reading caches for its next epochs.

1. decoded images, if all of them fit;
2. stored records, if they fit, which are decoded in each epoch;
3. nothing.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from recordgen.core.dataset.counts import ImageStats
from recordgen.reading.options import MEMORY, ReadOptions, RecordOptions
from recordgen.storage.memory import free_memory

#: The stages that can be kept.
RECORDS, IMAGES, PICTURES, NOTHING = "records", "images", "pictures", "nothing"

#: The stages after decoding.
DECODED = (IMAGES, PICTURES)

_WHAT = {
    RECORDS: "records as stored, before they are decoded",
    IMAGES: "decoded images (uint8), before they are augmented",
    PICTURES: "decoded pictures (uint8), before they are cropped",
}

# Assumed for pictures of unknown or different sizes: their area, relative to the part with the
# returned images' shape. It is true for 3:2 photos and a square image size.
_SHAPE = 1.5


@dataclass(frozen=True, slots=True)
class CachePlan:
    """A cache of the examples of one plan.

    Attributes:
        stage: ``records`` as stored; decoded ``images`` of the returned size; decoded ``pictures``,
            from which crops are cut; ``nothing``, because nothing fits.
        path: the file; "" for memory.
        bytes: the size of the cache; None if unknown. With ``nothing``: the size of the records.
        room: how many bytes the cache may take.
    """

    stage: str
    path: str
    bytes: int | None
    room: float = math.inf

    def __str__(self) -> str:
        size = "of unknown size" if self.bytes is None else _mb(self.bytes)
        if self.stage == NOTHING:
            return f"nothing: the records need {size}, and a cache may take {_mb(self.room)}"
        return f"{_WHAT[self.stage]}, {size} in {self.path or 'memory'}"


def plan_cache(
    options: RecordOptions,
    images: ImageStats | None,
    examples: int | None,
    record_bytes: float | None,
    *,
    is_checked: bool,
) -> CachePlan | None:
    """Plan a cache; what is None is unknown. Returns: None without a cache."""
    if options.cache is None:
        return None
    path = "" if options.cache == MEMORY else os.fspath(options.cache)
    # Do not plan by a disk's free space: it changes while the cache is written, and a different
    # plan would need a different file. The model and the shuffle buffer need half of the memory.
    room = options.tuning.cache_bytes or (math.inf if path else free_memory() // 2)
    if isinstance(options, ReadOptions) and examples is not None:
        decoded = examples * image_bytes(options, images)
        # A seed promises the same batches, so crops must not depend on the free memory.
        is_free = options.seed is None or options.tuning.cache_bytes is not None
        if decoded <= room and (not options.draws_pixels or (is_checked and is_free)):
            stage = PICTURES if options.draws_pixels else IMAGES
            return CachePlan(stage, path, decoded, room)
    stored = None if examples is None or record_bytes is None else int(examples * record_bytes)
    return CachePlan(RECORDS if stored is None or stored <= room else NOTHING, path, stored, room)


def image_bytes(options: ReadOptions, images: ImageStats | None) -> int:
    """Return the bytes of a decoded image; for pictures to be cropped, an estimate."""
    if not options.draws_pixels:
        height, width = options.image_size
        return 3 * height * width
    height, width = picture_size(options)
    if images is None:
        return int(3 * _SHAPE * height * width)
    (low, high), (narrow, wide) = images.height, images.width
    if (low, narrow) == (high, wide):
        scale = min(1.0, max(height / low, width / narrow))
        return 3 * math.ceil(scale * low) * math.ceil(scale * narrow)
    return int(3 * min(high * wide, _SHAPE * height * width))


def picture_size(options: ReadOptions) -> tuple[int, int]:
    """Return the height and width that a cached picture covers, unless the picture is smaller."""
    height, width = (math.ceil(side * options.tuning.crop_margin) for side in options.image_size)
    return height, width


def _mb(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"
