"""Compare the lengths of records with their file, before TensorFlow reads it.

TensorFlow allocates whatever a length says, and dies if that is more than there is. So all lengths
are checked first, once for each version of the files. Compressed files are not checked, because
TensorFlow's memory grows with what it unpacks, and neither are files in object stores, where each
record would take a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recordgen.access.counting import is_cheap, remembered
from recordgen.access.shards import ShardSet
from recordgen.core.ordered import map_in_order
from recordgen.core.records import RECORDS
from recordgen.errors import RecordError
from recordgen.reading.options import RecordOptions
from recordgen.reading.plan import ReadPlan

# On a cold disk, looking for the next record is a wait.
_THREADS = 16


def with_lengths_checked(plan: ReadPlan, shards: ShardSet, options: RecordOptions) -> ReadPlan:
    """Return a plan that names all files whose records have wrong lengths.

    Raises: RecordError: there is such a file, and damaged records are not skipped.
    """
    if shards.dataset is None:
        return plan  # other tools' files were counted, or are not checked
    found = _damages([file for file in plan.files if file not in plan.damaged])
    if found and not options.skips:
        raise RecordError(next(iter(found.values())))
    damaged = (*plan.damaged, *found)
    parts = tuple(replace(part, damaged=damaged) for part in plan.parts)
    return replace(plan, damaged=damaged, parts=parts) if found else plan


def _damages(paths: Sequence[str]) -> dict[str, str]:
    """Return the error messages of files whose records have wrong lengths, by path."""
    cheap = [path for path in paths if is_cheap(path)]
    if not cheap:
        return {}

    def check_all() -> int:
        return len(list(map_in_order(RECORDS.check_lengths, cheap, threads=_THREADS)))

    try:
        remembered(cheap, "lengths", check_all)
    except RecordError:
        return {path: message for path in cheap if (message := _damage(path))}
    return {}


def _damage(path: str) -> str:
    try:
        RECORDS.check_lengths(path)
    except RecordError as exc:
        return str(exc)
    return ""
