r"""Groups: rows that share a patient, a video or a session, and so a split.

    --group-by "(p\d+)/"   scans/p7/1.jpg   →  group "p7", by which the split is assigned
    --group-by patient     a row whose column patient is empty  →  a reject: its split is unknown

Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from recordgen.dataset.splits import EvalFrom, GroupBy
from recordgen.rejects import Reject, RejectCode
from recordgen.rows.row import Row, RowBatch, is_content_uri


def with_groups(
    batch: RowBatch, by: GroupBy, share: EvalFrom | None
) -> tuple[RowBatch, list[Reject]]:
    """Return the rows with their groups, and rejects of those that need one and have none.

    A row that names its split needs none, unless ``share`` may move it.
    """
    groups = batch.groups
    if by.pattern:
        groups = [None if is_content_uri(uri) else by.find(uri) for uri in batch.uris]
    elif groups is None:
        groups = [None] * len(batch.lines)
    batch = batch._replace(groups=groups)
    undecided = (None,) if share is None else (None, share.split)
    if None not in groups:
        return batch, []
    lost = [
        at
        for at, (group, split) in enumerate(zip(groups, batch.splits, strict=True))
        if group is None and split in undecided
    ]
    rejects = [_no_group(batch, at, by) for at in lost]
    return (_without(batch, lost) if lost else batch), rejects


def _no_group(batch: RowBatch, at: int, by: GroupBy) -> Reject:
    uri = batch.uris[at]
    if by.column:
        found = f"column {by.column!r} is empty"
        remedy = "fill it"
    elif uri and not is_content_uri(uri):
        found = f"group_by={by.pattern!r} matches nothing in the uri {uri!r:.200}"
        remedy = "let the expression match every uri"
    else:
        found = f"group_by={by.pattern!r} needs a uri, and the row has none"
        remedy = "name a column instead"
    message = f"{found}, so the row's split cannot be assigned; {remedy}, or name the row's split"
    return Reject(batch.source, batch.lines[at], uri, RejectCode.NO_GROUP.value, message)


def _without(batch: RowBatch, lost: Sequence[int]) -> RowBatch:
    dropped = set(lost)
    kept = [row for at, row in enumerate(batch.rows) if at not in dropped]
    columns = zip(*kept, strict=True) if kept else [()] * len(Row._fields)
    _, *rest = columns
    return RowBatch(batch.source, *rest)
