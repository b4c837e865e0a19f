"""Tables: a line of CSV is an example, its columns are the features.

Vertex AI "Prepare tabular training data for classification and regression"::

    split,age,job,balance,deposit
    TRAIN,58,management,2143.5,no

become ``age: 58``, ``balance: 2143.5``, ``deposit: b"no"`` and ``job: b"management"``. An empty
field is a missing value: its feature is left out. Equal lines are examples of their own, each an
observation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from recordgen.dataset.vocabulary import Vocabulary
from recordgen.errors import UsageError
from recordgen.features import FeatureSpec
from recordgen.options import ConvertOptions
from recordgen.tables.columns import Table
from recordgen.tasks.task import BuiltExample, RowContent, Task

if TYPE_CHECKING:
    from recordgen.rows.planned import PlannedRow


class Tabular(Task):
    """Classification and regression of tables.

    Lines go by columns, from the import file to the record: nobody asks about a single one.

    Attributes:
        table: its columns.
    """

    name = "tabular"
    kind = "table"
    noun = "row"
    expected = "a header, then a field for each of its columns"
    columns: ClassVar = {}
    uri_key = ""
    json_keys = ()
    features: ClassVar = {}
    reading = "recordgen.reading.kinds:TABLES"
    trainer = "recordgen.training.tables:TableTrainer"
    measure = "recordgen.kubeflow.scoring:TableAccumulator"
    sample = "pipelines.wines:WINES"
    page = "docs/tasks/tables.md"
    names_payloads = False
    by_columns = True

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def of(cls, options: ConvertOptions) -> Task:
        if options.shard_by == "label":
            raise UsageError(f"shard_by=label is not for {cls.name}: use shard_by=hash")
        if not options.table:
            raise UsageError("the columns are not decided: look at the import files first")
        return cls(Table.from_json(options.table))

    @property
    def has_labels(self) -> bool:
        return self.table.has_labels

    def make(
        self,
        row: PlannedRow,
        payloads: Sequence[bytes],
        vocabulary: Vocabulary,
        options: ConvertOptions,
    ) -> BuiltExample:
        raise NotImplementedError

    def said(self, values: Mapping[str, Sequence[Any]]) -> RowContent:
        raise NotImplementedError

    def stored_features(self) -> Mapping[str, FeatureSpec]:
        return self.table.features()

    def advice(self) -> Sequence[str]:
        return self.table.notes
