"""Tables: a line of CSV is an example, its columns are the features.

Vertex AI "Prepare tabular training data for classification and regression"::

    split,age,job,balance,deposit
    TRAIN,58,management,2143.5,no

become ``age: 58``, ``balance: 2143.5``, ``deposit: b"no"`` and ``job: b"management"``. An empty
field is a missing value: its feature is left out. The annotation is the line as it stands in the
file; equal lines are examples of their own, each an observation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from recordgen.columns import Table, csv_line
from recordgen.errors import PayloadError, UsageError
from recordgen.features import FeatureSpec
from recordgen.labels import Vocabulary
from recordgen.options import ConvertOptions
from recordgen.rows import RejectCode
from recordgen.tasks.task import AnnotationError, Made, Merged, Payload, Said, Task

if TYPE_CHECKING:
    from recordgen.resolving import PlannedRow, Stands

# What a feature takes in a record beside its name and value, about.
_FEATURE_BYTES = 14


class Tabular(Task):
    """Classification and regression of tables.

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
    names_payloads = False
    batch_rows = 8192

    def __init__(self, table: Table) -> None:
        self.table = table
        names = sum(len(column.name) + _FEATURE_BYTES for column in table.stored)
        self._names_bytes = names

    @classmethod
    def of(cls, options: ConvertOptions) -> Task:
        if options.shard_by == "label":
            raise UsageError(f"shard_by=label is not for {cls.name}: use shard_by=hash")
        if not options.columns:
            raise UsageError("the columns are not decided: look at the import files first")
        return cls(Table.from_json(options.columns))

    def from_fields(self, fields: Sequence[str], adjusted: Counter[str]) -> str | None:
        return csv_line(fields)

    def from_record(self, record: Mapping[str, Any], adjusted: Counter[str]) -> Sequence[Said]:
        raise AnnotationError(RejectCode.BAD_LINE, f"{self.name} comes as CSV with a header")

    def merge(self, annotations: Sequence[str | None]) -> Merged:
        return Merged(annotations[0], len(annotations) - 1)

    def contradicts(self, annotation: str, stored: str | None) -> bool:
        return annotation != stored

    def is_stored(self, uri: str) -> bool:
        return False

    def own_bytes(self, row: Stands) -> int:
        return self._names_bytes + len(row.annotation or "")  # the names stand in every record

    def labels(self, annotation: str) -> Sequence[str]:
        return list(self.count_labels([annotation]))

    @property
    def has_labels(self) -> bool:
        return self.table.prediction == "classification"

    def count_labels(self, annotations: Iterable[str]) -> Mapping[str, int]:
        if not self.has_labels:
            return {}
        from recordgen.table_blocks import in_blocks  # Arrow is not needed to say --help
        from recordgen.table_examples import count_labels

        counts: Counter[str] = Counter()
        for lines in in_blocks(annotations):
            counts.update(count_labels(lines, self.table))
        return counts

    def numbers_in_record(self, annotation: str, vocabulary: Vocabulary) -> Sequence[int]:
        return ()  # the target stays as it is

    def make(
        self, row: PlannedRow, payload: bytes, vocabulary: Vocabulary, options: ConvertOptions
    ) -> Made:
        [made] = self.make_all([row], [bytes], vocabulary, options)
        if isinstance(made, PayloadError):
            raise made
        return made

    def make_all(
        self,
        rows: Sequence[PlannedRow],
        payloads: Sequence[Payload],
        vocabulary: Vocabulary,
        options: ConvertOptions,
    ) -> list[Made | PayloadError]:
        from recordgen.table_examples import make_examples

        return make_examples([row.annotation or "" for row in rows], self.table)

    def said(self, values: Mapping[str, Sequence[Any]]) -> Said:
        raise KeyError("a row of a table has no name")

    def stored_features(self) -> Mapping[str, FeatureSpec]:
        return self.table.features()

    def advice(self) -> Sequence[str]:
        return self.table.notes
