r"""Groups of rows that share a patient, a video or a session, and therefore a split.

    --group-by "(p\d+)/"   scans/p7/1.jpg   →  group "p7", which decides the split
    --group-by patient     a row whose column patient is empty  →  a reject: its split is unknown

Pure functions.
"""

from __future__ import annotations

from itertools import compress

from recordgen.core.dataset.splits import EvalFrom, GroupBy
from recordgen.core.rows.row import RowBatch, is_content_uri
from recordgen.messages.masking import masked
from recordgen.rejects import Reject, RejectCode


def with_groups(
    batch: RowBatch, by: GroupBy, share: EvalFrom | None
) -> tuple[RowBatch, list[Reject]]:
    """Return the rows with their groups, and rejects of rows that need a group but have none.

    A row that names its split needs no group, unless ``share`` may move the row.
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
    kept = [
        group is not None or split not in undecided
        for group, split in zip(groups, batch.splits, strict=True)
    ]
    rejects = [_no_group(batch, at, by) for at, is_kept in enumerate(kept) if not is_kept]
    columns = (None if column is None else [*compress(column, kept)] for column in batch[1:])
    return RowBatch._make((batch.source, *columns)), rejects


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
    return Reject(batch.source, batch.lines[at], uri, RejectCode.NO_GROUP.value, masked(message))
