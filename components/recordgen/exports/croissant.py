"""``croissant.json``: a description of a dataset in Croissant 1.1, for catalogues and loaders.

``mlcroissant.Dataset("OUT/croissant.json").records("labels")`` → the labels, record by record.

The template ``croissant.json`` says all of it. The record sets ``splits``, ``shards`` and
``labels`` contain their records. ``examples`` describes the features of the TFRecords, which
Croissant's own loader cannot read. ``rows`` has one record per example, from ``examples.parquet``,
which the loader can read: the place of the record, its annotation, and measures of its image. Its
import file is missing, because it may be a path of this machine, and so are integer columns with
gaps, which mlcroissant cannot read.

Rules: "Croissant Format Specification" 1.1, docs.mlcommons.org/croissant. Unknown properties, such
as the licence, are missing: a loader warns of them.
"""

from __future__ import annotations

import hashlib
import json

from recordgen.core.task.annotation import is_image, label_files, stored_features
from recordgen.exports.export import FileExport, Output
from recordgen.exports.templates import environment
from recordgen.lineage import dataset_name


class Croissant(FileExport):
    """``croissant.json``, which every conversion writes."""

    file = "croissant.json"

    def text(self, output: Output) -> str:
        dataset, texts = output.dataset, environment()
        texts.tests["image"] = is_image
        texts.filters["sha256"] = lambda data: hashlib.sha256(data).hexdigest()
        described = texts.get_template(self.file).render(
            dataset=dataset,
            name=dataset_name(dataset),
            files={name: text.encode() for name, text in label_files(dataset).items()},
            features=stored_features(dataset),
            has_examples=output.has_examples(),
            is_measured=all(split.images is not None for split in dataset.splits.values()),
        )
        return json.dumps(json.loads(described), indent=2, ensure_ascii=False) + "\n"
