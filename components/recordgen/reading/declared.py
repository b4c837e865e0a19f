"""Examples of a schema with one column of images: read as labelled images are.

All others are read by :mod:`recordgen.reading.columns`; so are these if columns are named.
"""

from __future__ import annotations

from dataclasses import replace

from recordgen.reading.images import ImageReading
from recordgen.reading.options import ReadOptions
from recordgen.reading.plan import ReadPlan, plan_reading
from recordgen.reading.shards import ShardSet
from recordgen.tasks import ImageClassification


def plan_declared(shards: ShardSet, options: ReadOptions) -> ReadPlan:
    """Plan how the images are read.

    Raises:
        UsageError: an option does not go with the data.
        DataError: nothing is left to read.
    """
    return plan_reading(_as_images(shards), options)


def read_declared(shards: ShardSet, plan: ReadPlan, options: ReadOptions) -> ImageReading:
    """Prepare a planned reading. Raises: as :func:`plan_declared`."""
    reading = ImageReading.of(_as_images(shards), plan, options)
    if shards.dataset is None:
        return reading
    return replace(reading, described=shards.dataset.features)


def _as_images(shards: ShardSet) -> ShardSet:
    """Return shards as those of image classification: the names of the features are the same."""
    dataset = shards.dataset
    if dataset is None:
        return shards
    return replace(shards, dataset=replace(dataset, task=ImageClassification.name, features={}))
