"""Tables: a line of CSV is an example, and its columns are the features.

Vertex AI "Prepare tabular training data for classification and regression"::

    split,age,job,balance,deposit
    TRAIN,58,management,2143.5,no

become ``age: 58``, ``balance: 2143.5``, ``deposit: b"no"`` and ``job: b"management"``. An empty
field is a missing value, and its feature is omitted. Equal lines are separate examples: each is an
observation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts import ROWS
from recordgen.core.settings import PayloadSettings, TaskSettings
from recordgen.core.task.task import (
    GAP,
    INEXACT,
    ONE,
    BuiltBatch,
    FetchPayloads,
    Lists,
    Sizes,
    Task,
    Texts,
)
from recordgen.errors import UsageError
from recordgen.features import FeatureSpec
from recordgen.rejects import Reject, RejectCode
from recordgen.tables.columns import Table

if TYPE_CHECKING:
    from recordgen.core.rows.columns import PlannedBatch

# Approximate bytes of a feature in a record besides its name and value.
_FEATURE_BYTES = 14


class TableTask(Task):
    """A task whose examples are rows of a table."""

    noun = "row"
    features: ClassVar = {}
    trainer = "recordgen.tasks.tables.training:TableTrainer"
    measure = "recordgen.training.measures:TableAccumulator"

    table: Table


class Tabular(TableTask):
    """Classification and regression of tables.

    An annotation is the line of CSV. Examples are made by columns, many at a time.
    """

    name = "tabular"
    kind = "table"
    expected = "a header, then a field for each of its columns"
    csv_parser = "recordgen.formats.table_columns:TableParser"
    reading = "recordgen.tasks.tables.reading:TABLES"
    pairing = "recordgen.tasks.tables.pairing:rows"
    sample = "pipelines.samples.wines:WINES"
    names_payloads = False
    facts = (ROWS,)
    batch_rows = 8192  # enough for Arrow, and few compared to the lines of a shard

    def preview(self, uri: str, annotation: str | None) -> tuple[str, str | None]:
        return annotation or "", None

    def __init__(self, table: Table) -> None:
        self.table = table
        self.labelling = ONE if table.has_labels else None

    @classmethod
    def of(cls, settings: TaskSettings) -> Task:
        if settings.by_label:
            raise UsageError(f"shard_by=label is not for {cls.name}: use shard_by=hash")
        table = settings.table
        if not isinstance(table, Table):
            raise UsageError("the columns are not decided: detect them from the import files first")
        if settings.stratifies and not table.has_labels:
            raise UsageError(
                "stratify=label needs a target of classes; name one with --columns target=NAME, or "
                "omit stratify"
            )
        return cls(table)

    def own_sizes(self, uris: Texts, annotations: Texts) -> Sizes:
        import pyarrow.compute as pc

        # Every record repeats the names.
        names = sum(len(column.name) + _FEATURE_BYTES for column in self.table.stored)
        return pc.add(super().own_sizes(uris, annotations), names)

    def label_lists(self, annotations: Texts) -> Lists:
        from recordgen.tables.examples import label_lists

        return label_lists(annotations, self.table)

    def nearly_agree(self, one: str, other: str) -> bool:
        return not self.table.has_labels  # equal inputs may have different amounts

    def column_values(self, annotations: Texts) -> Mapping[str, Any]:
        """Return the values of each column that becomes a feature, null if one is missing."""
        from recordgen.tables.examples import column_values

        return column_values(annotations, self.table)

    def make(
        self,
        rows: PlannedBatch,
        payloads: Sequence[FetchPayloads],
        vocabulary: Vocabulary,
        settings: PayloadSettings,
    ) -> BuiltBatch:
        import pyarrow as pa
        import pyarrow.compute as pc

        from recordgen.core.facts.columns import FactsBuilder
        from recordgen.core.facts.kept_rows import odd_rows
        from recordgen.core.rows.columns import joined
        from recordgen.tables.examples import make_examples

        columns = rows.columns
        made = make_examples(columns["annotation"].combine_chunks(), self.table)
        errors = sorted(made.errors)
        refused = columns.take(pa.array(errors, pa.int64()))
        odd = odd_rows(made.values.values()) if settings.needs_rows else None
        assigned, lost = (pc.sum(part["assigned"]).as_py() or 0 for part in (columns, refused))
        lines = zip(refused["source"].to_pylist(), refused["line"].to_pylist(), strict=True)
        return BuiltBatch(
            examples=len(made.records),
            column=made.records,
            digested=[joined(made.records)],
            assigned=assigned - lost,
            labels=Counter(made.labels),
            unlabelled=len(made.records) - sum(made.labels.values()),
            rejects=[
                Reject(source, line, "", RejectCode.BAD_ANNOTATION.value, made.errors[at])
                for at, (source, line) in zip(errors, lines, strict=True)
            ],
            payload_bytes=rows.payload_bytes,
            changes=Counter(
                {f"{GAP}{name}": count for name, count in made.gaps.items()}
                | {f"{INEXACT}{name}": count for name, count in made.inexact.items()}
            ),
            facts=FactsBuilder.of(made.contents, errors, made.targets, odd),
        )

    def stored_features(self) -> Mapping[str, FeatureSpec]:
        return self.table.features()

    def advice(self) -> Sequence[str]:
        return self.table.notes
