"""Names of a run's counts, the same in Beam's metrics, in the JSON log and in the results.

``rows_read == rows_planned + rows_rejected + rows_duplicate + rows_merged + rows_dropped +
rows_existing``, and at the end ``rows_planned == examples_written + payloads_rejected``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from recordgen.core.dataset.lint import ERROR, WARNING, count_level

if TYPE_CHECKING:
    from recordgen.core.dataset.manifest import Dataset
    from recordgen.core.runs.staging import StagedPlan
    from recordgen.core.shards import SplitSum

NAMESPACE = "recordgen"

#: Rows in the import files.
ROWS_READ = "rows_read"
#: Rows that become examples unless their payload is refused.
ROWS_PLANNED = "rows_planned"
#: Rows rejected while planning; their payload was not opened.
ROWS_REJECTED = "rows_rejected"
#: Rows that repeat another row.
ROWS_DUPLICATE = "rows_duplicate"
#: Rows that add something to another row's example.
ROWS_MERGED = "rows_merged"
#: Rows without a split, dropped by ``missing_split=drop``.
ROWS_DROPPED = "rows_dropped"
#: Rows whose example is in the dataset that is appended to.
ROWS_EXISTING = "rows_existing"
#: Examples written; for a check, the examples that a conversion would write.
EXAMPLES_WRITTEN = "examples_written"
#: Planned rows whose payload was refused.
PAYLOADS_REJECTED = "payloads_rejected"
#: Bytes of the processed payloads, including refused ones.
PAYLOAD_BYTES = "payload_bytes"
#: Bytes of the shards written.
SHARD_BYTES = "shard_bytes"


def total_counts(plan: StagedPlan, results: Collection[SplitSum] = ()) -> dict[str, int]:
    """Return the counts of a run by the names above; without results if it only planned."""
    return {
        ROWS_READ: plan.read,
        ROWS_PLANNED: plan.rows,
        ROWS_REJECTED: len(plan.rejects),
        ROWS_DUPLICATE: plan.duplicates,
        ROWS_MERGED: plan.merged,
        ROWS_DROPPED: plan.dropped,
        ROWS_EXISTING: plan.existing,
        EXAMPLES_WRITTEN: sum(each.examples for each in results),
        PAYLOADS_REJECTED: sum(len(each.rejects) for each in results),
        PAYLOAD_BYTES: plan.bytes if results else 0,
        SHARD_BYTES: sum(shard.bytes for each in results for shard in each.shards),
    }


def dataset_numbers(dataset: Dataset) -> dict[str, int]:
    """Return the numbers of a dataset that pipelines display, by the names that all steps use."""
    rows = dataset.rows
    return {
        "rows": rows.read,
        "examples": dataset.examples,
        "duplicates": rows.duplicates,
        "merged": rows.merged,
        "dropped": rows.dropped,
        "rejects": rows.rejects,
        "lint_errors": count_level(dataset.lint, ERROR),
        "lint_warnings": count_level(dataset.lint, WARNING),
        "label_count": len(dataset.labels),
    }
