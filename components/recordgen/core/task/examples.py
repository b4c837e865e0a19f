"""How rows become examples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.rows.planned import PlannedRow
from recordgen.core.settings import PayloadSettings
from recordgen.core.task.annotations import Declaration
from recordgen.core.task.built import BuiltBatch, BuiltExample
from recordgen.errors import PayloadError
from recordgen.features import FeatureSpec
from recordgen.rejects import Reject

if TYPE_CHECKING:
    from recordgen.core.rows.columns import PlannedBatch

#: Returns a row's payloads. Raises PayloadError if one is refused, StorageError if storage failed.
FetchPayloads = Callable[[], Sequence[bytes]]

#: (task, row, the bytes of each of its ``stored_uris``, vocabulary, settings) → the row's example.
#: Raises PayloadError if a payload is refused.
MakeExample = Callable[
    [Any, PlannedRow, Sequence[bytes], Vocabulary, PayloadSettings], BuiltExample
]


def each_row(make_example: MakeExample) -> Callable[..., BuiltBatch]:
    """Make :meth:`Examples.make` of a method that makes the example of one row."""

    @wraps(make_example)
    def make(
        self: Any,
        rows: PlannedBatch,
        payloads: Sequence[FetchPayloads],
        vocabulary: Vocabulary,
        settings: PayloadSettings,
    ) -> BuiltBatch:
        from recordgen.core.facts.builder import ExampleNote, FactsBuilder, content_of

        facts = FactsBuilder()
        built = BuiltBatch(payload_bytes=rows.payload_bytes, facts=facts)
        for number, row in enumerate(rows.rows):
            try:
                fetched = payloads[number]() if payloads else ()
                made = make_example(self, row, fetched, vocabulary, settings)
            except PayloadError as exc:
                built.rejects.append(Reject(row.source, row.line, row.uri, exc.code, exc.message))
                facts.add(None)
                continue
            built.add(made, assigned=row.assigned)
            content = row.sort_key if made.content is None else content_of(made.content)
            facts.add(ExampleNote(content, made.image, made.seen))
        return built

    return make


class Examples(Declaration):
    """Makes examples of rows with their payloads.

    Class attributes:
        features: features of its examples.
        facts: the facts that its examples have, see :mod:`recordgen.core.facts`: checks that need
            them examine them.
        batch_rows: number of rows that a thread makes into examples at a time, unless they are
            large.
    """

    features: ClassVar[Mapping[str, FeatureSpec]]
    facts: ClassVar[Collection[str]] = ()
    batch_rows: ClassVar[int]

    def make(
        self,
        rows: PlannedBatch,
        payloads: Sequence[FetchPayloads],
        vocabulary: Vocabulary,
        settings: PayloadSettings,
    ) -> BuiltBatch:
        """Make examples of several rows; :func:`each_row` makes them one by one.

        Args:
            rows: the planned rows.
            payloads: the payloads of each row; empty if rows of this task have none.
            vocabulary: numbers the labels.
            settings: how to check and change payloads.

        Raises: StorageError: storage failed.
        """
        raise NotImplementedError

    @classmethod
    def digested(cls, record: bytes) -> bytes:
        """Return the bytes that a serialised example adds to its shard's digest.

        Raises: ValueError: Recordgen did not write the example.
        """
        return record

    def stored_features(self) -> Mapping[str, FeatureSpec]:
        """Return the features for ``dataset.json``, if they differ between datasets."""
        return {}

    def advice(self) -> Sequence[str]:
        """Return a sentence for each peculiarity of the dataset, except of its labels."""
        return ()

    @classmethod
    def files(cls, labels: Sequence[str]) -> Mapping[str, str]:
        """Return additional output files that depend on the labels: text by name."""
        return {}
