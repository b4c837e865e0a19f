"""Records → batches of images and labels.

files ─shuffle─▶ interleave ─▶ records ─shuffle─▶ repeat ─▶ batch ─▶ parse, decode, augment
│                                          │
cache                                     prefetch
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.access.shards import ShardSet
from recordgen.reading.augmentation import Changes, draw_changes, shown_views
from recordgen.reading.decoding import ImageDecoder, as_written, image_sizes, stored_sizes
from recordgen.reading.detection import Boxes, BoxTargets, Masks, MaskTargets
from recordgen.reading.foreign import check_record, is_ours, keeping_labelled
from recordgen.reading.levels import to_uint8, typed
from recordgen.reading.options import ReadOptions
from recordgen.reading.parsing import parse_named, parser_for, parsing_spec
from recordgen.reading.plan import BOX_MODE, MASK_MODE, ReadPlan
from recordgen.reading.records import (
    finished,
    parallel_calls,
    random_numbers,
    read_records,
    repeated_batches,
)
from recordgen.reading.targets import Targets

# The parts of a batch between the stages.
_IMAGE, _LABEL, _EXTRAS = "image", "label", "extras"


class ImageReading:
    """A planned reading of images.

    Attributes:
        targets: how labels, boxes or masks are read.
        extras: specs of the further features.
        stored: the names of features in other tools' records by Recordgen's.
        has_raw: whether formats must be read to know which images are raw pixels.
        keep: the function that selects records; None if all are read.
    """

    def __init__(
        self,
        shards: ShardSet,
        plan: ReadPlan,
        options: ReadOptions,
        described: Mapping[str, features.FeatureSpec] | None = None,
    ) -> None:
        """Prepare a planned reading; check the first record of other tools' files.

        ``described`` are further features of the records, which a predicate may use.

        Raises:
            UsageError: an option does not fit the data.
            DataError: the records hold no images, or a feature is missing.
            RecordError: the first file is damaged.
        """
        if plan.classes is None:
            raise TypeError("a plan for images has classes")
        self.plan, self.options = plan, options
        self.targets: Targets | BoxTargets | MaskTargets
        if plan.classes.mode == BOX_MODE:
            self.targets = BoxTargets(plan.classes, options, shards.dataset)
        elif plan.classes.mode == MASK_MODE:
            self.targets = MaskTargets(plan.classes, options)
        else:
            self.targets = Targets(plan.classes, options)
        ours, names = is_ours(shards), tuple(self.targets.spec)
        self.extras, self.stored = check_record(shards, plan, options, names)
        self.parse = parser_for(shards.dataset)
        images = shards.images if ours else None
        size, resize = options.image_size, options.resize
        self.decoder = ImageDecoder(size, resize, options.tuning.decoder, images)
        are_all_raw = self.decoder.are_raw and plan.is_checked
        self.has_raw = ours and shards.may_be_raw and not are_all_raw
        self.keep = keeping_labelled(
            shards, plan, options, self.targets, self.stored, described or {}
        )

    def to_batch(self, records: tf.Tensor) -> Any:
        """Turn records (string [batch]) into a batch, in one step."""
        return self._elements(self._decoded(records, tf.constant(0, tf.int64)))

    def dataset(self) -> tf.data.Dataset:
        """Return the dataset: all stages, in their order."""
        plan, options = self.plan, self.options
        records, make = read_records(plan, options, self.keep), self._decoded
        if plan.cache is not None and plan.cache.keeps_images:
            # Cache before augmenting: otherwise every epoch would see the same changes.
            records, make = self._to_keep(records), self._changed
        # Batch before parse: one vectorised call for all records.
        batches = self._seeded(repeated_batches(records, plan, options))
        elements = as_written(lambda *batch: self._elements(make(*batch)))
        return finished(batches.map(elements, **parallel_calls(options)), plan, options)

    def _to_keep(self, records: tf.data.Dataset) -> tf.data.Dataset:
        """Decode records, in batches, to single images for the cache."""
        batched = records.batch(self.options.batch_size)
        return batched.map(self._kept_images, **parallel_calls(self.options)).unbatch()

    def _seeded(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Give each batch that changes a random number, so that its changes can be repeated."""
        if self.options.changes is None and not self.options.draws_pixels:
            return dataset
        return tf.data.Dataset.zip((dataset, random_numbers(self.options.seed)))

    @as_written
    def _parsed(self, records: tf.Tensor) -> tuple[dict[str, Any], Mapping[str, tf.Tensor]]:
        """Return labels and extras of records (string [batch]), and all parsed features."""
        image = {features.IMAGE_ENCODED: tf.io.FixedLenFeature((), tf.string)}
        wanted = {**image, **self.extras, **self.targets.spec}
        if self.plan.is_checked or self.has_raw:
            sizes = [features.IMAGE_HEIGHT, features.IMAGE_WIDTH]
            wanted |= parsing_spec([*sizes, features.IMAGE_FORMAT] if self.has_raw else sizes)
        parsed = parse_named(records, wanted, self.stored, self.parse)
        extras = parsed
        if not self.extras.keys().isdisjoint(self.targets.spec):
            # As labels, features are parsed as lists; as extras, with their own shape.
            extras = tf.io.parse_example(records, dict(self.extras))
        found: dict[str, Any] = {_EXTRAS: {name: extras[name] for name in self.extras}}
        if isinstance(self.targets, BoxTargets | MaskTargets):
            found[_LABEL] = self.targets.stored(parsed)
        elif self.targets.mode is not None:
            found[_LABEL] = self.targets.labels(parsed)
        return found, parsed

    @as_written
    def _decoded(self, records: tf.Tensor, seed: tf.Tensor | None = None) -> dict[str, Any]:
        """Turn records (string [batch]) into decoded images, labels and extras.

        Images are changed if there is a seed.
        """
        changes = self._changes(tf.shape(records)[0], seed)
        found, parsed = self._parsed(records)
        encoded = parsed[features.IMAGE_ENCODED]
        crop_seed = tf.stack([seed, 0]) if self.options.draws_pixels else None
        part, is_checked = (lambda name: parsed[f"image/{name}"]), self.plan.is_checked
        sizes, is_raw = stored_sizes(part, are_checked=is_checked, has_raw=self.has_raw)
        found[_IMAGE] = self.decoder.decode(encoded, sizes, crop_seed, is_raw, changes)
        if isinstance(self.targets, BoxTargets | MaskTargets):
            if not is_checked:
                sizes = image_sizes(encoded, sizes)
            views = self.decoder.views(encoded, sizes, crop_seed, is_raw)
            found[_LABEL] = self._moved(found[_LABEL].seen_through(views), changes)
        return found

    def _changes(self, count: tf.Tensor, seed: tf.Tensor | None) -> Changes | None:
        how, size = self.options.changes, self.options.image_size
        if how is None or seed is None:
            return None
        return draw_changes(how, count, size, tf.stack([seed, 1]))

    def _moved(self, parts: Boxes | Masks, changes: Changes | None) -> Boxes | Masks:
        if changes is not None and "crop" in changes:
            parts = parts.seen_through(shown_views(changes["crop"], self.options.image_size))
        if changes is not None and "is_mirrored" in changes:
            parts = parts.mirrored(changes["is_mirrored"])
        return parts

    @as_written
    def _kept_images(self, records: tf.Tensor) -> dict[str, Any]:
        """Turn records (string [batch]) into uint8 images, labels and extras."""
        decoded = self._decoded(records)
        return decoded | {_IMAGE: to_uint8(decoded[_IMAGE])}

    def _changed(self, kept: dict[str, Any], seed: tf.Tensor | None = None) -> dict[str, Any]:
        """Apply the changes to cached images."""
        changes, parts = self._changes(tf.shape(kept[_IMAGE])[0], seed), kept.get(_LABEL)
        if changes is None:
            return kept
        found = {**kept, _IMAGE: self.decoder.changed(kept[_IMAGE], changes)}
        if isinstance(parts, Boxes | Masks):
            found[_LABEL] = self._moved(parts, changes)
        return found

    @as_written
    def _elements(self, decoded: dict[str, Any]) -> Any:
        """Turn a batch of decoded and changed images into the batch that the user gets."""
        images = typed(decoded[_IMAGE], *self.options.pixels)
        parts = [images]
        if isinstance(self.targets, BoxTargets | MaskTargets):
            parts.append(self.targets.to_batch(decoded[_LABEL], images.shape[0]))
        elif self.targets.mode is not None:
            parts += self.targets.parts(decoded[_LABEL], images.shape[0])
        if self.extras:
            parts.append(decoded[_EXTRAS])
        return parts[0] if len(parts) == 1 else tuple(parts)
