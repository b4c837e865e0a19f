"""Images and texts whose annotation would lack a part, because one of their rows was rejected.

If rows of one payload add labels, boxes or spans, a rejected row must not leave an example with
only the rest: a detector would learn that an unmarked object is background. So all rows of the
payload are rejected. Pure functions.

    a.jpg,cat,.1,.1,,,.2,.2,,   rejected as incomplete, which names the next line
    a.jpg,dog,.5,.5,,,six,.6,,  rejected by its reader
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordgen import storage
from recordgen.core.rows.columns import Columns, rows_of, shares_of
from recordgen.core.rows.placing import placing, row_name
from recordgen.core.rows.planned import PlacedRow
from recordgen.core.rows.row import is_content_uri
from recordgen.core.task.annotation import AnnotationError
from recordgen.core.task.task import ADDING, Task
from recordgen.rejects import Reject, RejectCode, place_of, reject

# Characters of the reason that a message quotes.
_REASON_SHOWN = 200


def lost_by_bucket(
    rejects: Iterable[Reject], task: Task, seed: int, buckets: int
) -> dict[int, list[Reject]]:
    """Return the rejects that leave their payload incomplete, by the bucket of its other rows.

    Their uris are as rows have them.
    """
    found: dict[int, list[Reject]] = defaultdict(list)
    if task.labelling not in ADDING:
        return found
    place = placing(seed)
    for item in rejects:
        try:
            uri = item.uri if is_content_uri(item.uri) else task.check_uri(item.uri)
        except AnnotationError:
            continue  # no row has such a uri
        if uri:
            key = np.array([place(row_name(uri, None)).sort_key], np.uint64)
            [bucket] = shares_of(key, [1] * buckets).tolist()
            found[bucket].append(item._replace(uri=uri))
    return found


def with_doubt(item: Reject, task: Task) -> Reject:
    """Return a reject that says so if nobody can tell which example lacks its row."""
    if item.uri or task.labelling not in ADDING:
        return item
    return item._replace(
        message=f"{item.message}; the {task.noun} of this row is unknown, and if other rows name "
        f"it, its example is incomplete: correct this row"
    )


def without_incomplete(
    rows: Columns, lost: Sequence[Reject], task: Task
) -> tuple[Columns, list[Reject]]:
    """Return the rows of a bucket whose payload is complete, and a reject for each other row."""
    if not lost:
        return rows, []
    first: dict[str, Reject] = {}
    for item in sorted(lost):  # the same relative uri in two folders names two payloads
        first.setdefault(storage.resolve(item.uri, item.source), item)
    is_near = pc.is_in(rows["uri"], value_set=pa.array({item.uri for item in lost}))
    rejects: list[Reject] = []
    is_lost = np.asarray(is_near).copy()
    for at, row in zip(
        np.flatnonzero(is_lost), rows_of(PlacedRow, rows.filter(is_near)), strict=True
    ):
        cause = first.get(storage.resolve(row.uri, row.source))
        if cause is None:
            is_lost[at] = False
            continue
        message = (
            f"the {task.noun} would be incomplete without its row "
            f"{place_of(cause.source, cause.line, cause.uri)}, which was rejected ({cause.code}: "
            f"{cause.message:.{_REASON_SHOWN}}); correct that row, or delete all rows of the "
            f"{task.noun}"
        )
        rejects.append(reject(row, RejectCode.INCOMPLETE, message))
    return rows.filter(pa.array(~is_lost)), rejects
