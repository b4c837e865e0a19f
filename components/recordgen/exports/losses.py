"""What the objects of a dataset have that a copy would lose, counted before its first byte.

A COCO document with three crowds  ─export yolo─▶  {"crowd": 3, "area": 41}
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from recordgen import features
from recordgen.core.rows.details import Details
from recordgen.errors import UsageError
from recordgen.exports.output import Output
from recordgen.tasks.object_detection.annotation import Boxes

_log = logging.getLogger(__name__)

#: All that a dataset may have, in the order of the table in the documentation.
PARTS = (
    *("images", "labels", "numbers", "splits", "boxes", "crowd", "difficult", "area", "keypoints"),
    *("outlines", "masks", "texts", "tables", "entities"),
)

# The features that records have if any object has a part.
_FEATURES: Mapping[str, Sequence[str]] = {
    "crowd": features.OBJECT_FLAGS[:1],
    "difficult": features.OBJECT_FLAGS[1:],
    "area": [features.IMAGE_OBJECT_AREA],
    "keypoints": [features.IMAGE_OBJECT_KEYPOINT_X],
    "outlines": [features.IMAGE_OBJECT_POLYGON_X, features.IMAGE_OBJECT_MASK_RUNS],
}


def check(
    output: Output, splits: Collection[str], name: str, keeps: Collection[str], *, is_lossy: bool
) -> None:
    """Warn of what a copy named ``name`` would lose of the objects of some splits.

    Raises: UsageError: these are crowds, and ``is_lossy`` is false.
    """
    lost = lost_objects(output, splits, keeps)
    counts = ", ".join(f"{part} ({number:,} objects)" for part, number in lost.items())
    if "crowd" in lost and not is_lossy:
        raise UsageError(
            f"{name} has no word for crowds, and a model would take each for one object; use "
            f"--lossy to leave them out, or export coco, which keeps them; it does not keep: "
            f"{counts}"
        )
    if lost:
        _log.warning("the copy does not keep: %s", counts)


def lost_objects(
    output: Output, splits: Collection[str], keeps: Collection[str]
) -> Mapping[str, int]:
    """Return the number of objects with each part that a copy does not keep.

    It is 0 if nothing says it, because the dataset has no ``examples.parquet``.

    Raises: SourceError: ``examples.parquet`` is damaged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    has = frozenset(output.dataset.objects)
    lost = {part for part, names in _FEATURES.items() if part not in keeps and has & {*names}}
    if not lost or not output.has_examples():
        return dict.fromkeys(sorted(lost), 0)
    counts: Counter[str] = Counter()
    for part in output.example_parts(("split", "annotation")):
        is_copied = pc.is_in(part["split"].cast("string"), value_set=pa.array(list(splits)))
        for annotation in part.filter(is_copied)["annotation"].to_pylist():
            for details in Boxes.from_json(annotation).details:
                counts.update(lost & _parts_of(details))
    return dict(sorted(counts.items()))


def _parts_of(details: Details) -> set[str]:
    has = {
        "crowd": features.IS_CROWD in details.flags,
        "difficult": bool(details.flags - {features.IS_CROWD}),
        "area": details.area is not None,
        "keypoints": bool(details.keypoints),
        "outlines": bool(details.digest),  # examples.parquet has no more of them
    }
    return {part for part, is_there in has.items() if is_there}
