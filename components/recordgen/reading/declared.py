"""Examples of a schema with one column of images: read as labelled images are."""

from __future__ import annotations

from dataclasses import replace

from recordgen.errors import UsageError
from recordgen.reading.images import ImageReading
from recordgen.reading.options import ReadOptions
from recordgen.reading.plan import ReadPlan, plan_reading
from recordgen.reading.shards import ShardSet
from recordgen.schema import Schema
from recordgen.tasks import ImageClassification


def plan_declared(shards: ShardSet, options: ReadOptions) -> ReadPlan:
    """Plan how the images are read.

    Raises:
        UsageError: an option does not go with the data, or the schema has not one image.
        DataError: nothing is left to read.
    """
    return plan_reading(_as_images(shards), options)


def read_declared(shards: ShardSet, plan: ReadPlan, options: ReadOptions) -> ImageReading:
    """Prepare a planned reading. Raises: as :func:`plan_declared`."""
    return ImageReading.of(_as_images(shards), plan, options)


def _as_images(shards: ShardSet) -> ShardSet:
    """Return shards as those of image classification: the names of the features are the same."""
    dataset = shards.dataset
    if dataset is None:
        return shards
    if Schema.from_json(dataset.options["schema"]).only_image is None:
        raise UsageError(
            f"{shards.files[0].path}: the schema of these examples has not exactly one column of "
            f"images, so there are no batches of images and labels; recordgen.read gives all its "
            f"features: {', '.join(dataset.features)}"
        )
    return replace(shards, dataset=replace(dataset, task=ImageClassification.name, features={}))
