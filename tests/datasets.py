"""Descriptions of datasets that no conversion wrote."""

from recordgen.core.dataset.counts import RowCounts
from recordgen.core.dataset.manifest import Dataset


def dataset_of(**given):
    """Return the content of a ``dataset.json``: of labelled images unless the fields say more."""
    fields = {
        "task": "image_classification",
        "recordgen_version": "1.2.3",
        "source": ("a.csv",),
        "seed": 0,
        "options": {},
        "compression": "none",
        "label_kind": "text",
        "labels": (),
        "splits": {},
        "rows": RowCounts(),
        "reencoded": {},
        "warnings": (),
        "digest": "",
    }
    return Dataset(**{**fields, **given})
