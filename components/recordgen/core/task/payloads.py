"""Which payloads rows have, and where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from recordgen.core.rows.row import CONTENT
from recordgen.core.task.annotation import check_uri
from recordgen.core.task.declaration import Declaration

# Arrow's stubs, where there are any, differ from version to version.
Texts: TypeAlias = Any  # pa.StringArray
Sizes: TypeAlias = Any  # pa.Int64Array


class Payloads(Declaration):
    """Finds the payloads of rows.

    Class attributes:
        names_payloads: whether a row has a uri that identifies it; else the row holds the whole
            example.
        by_address: whether payloads are identified and placed by their resolved address, not by
            its spelling in a line, so that the parts of one payload share a split. Planned rows
            then have the uris of :func:`recordgen.core.flow.steps.located`.
    """

    names_payloads: ClassVar[bool] = True
    by_address: ClassVar[bool] = False

    def part(self, annotation: str | None) -> str:
        """Return the part of its payload that a row is about; "" is the whole payload.

        Rows of one part make one example.
        """
        return ""

    def check_uri(self, uri: str) -> str:
        """Return the address of a payload, as :func:`check_uri` does. Raises: AnnotationError."""
        return check_uri(uri)

    def stored_uris(
        self, uris: Sequence[str], annotations: Sequence[str | None]
    ) -> Sequence[Sequence[str]]:
        """Return the addresses of the payloads in storage that each row needs."""
        return [() if not uri or uri.startswith(CONTENT) else (uri,) for uri in uris]

    def with_uris(self, annotation: str | None, uris: Mapping[str, str]) -> str | None:
        """Return an annotation with its addresses replaced; ``uris`` maps old ones to new ones."""
        return annotation

    def own_sizes(self, uris: Texts, annotations: Texts) -> Sizes:
        """Return the approximate bytes that each row itself adds to its record."""
        import pyarrow.compute as pc  # reading import files does not need Arrow

        return pc.utf8_length(annotations.fill_null("")).cast("int64")

    def annotations_for_checks(self, annotations: Texts) -> Sequence[str | None] | None:
        """Return the rows' annotations without the payloads that they contain.

        None if nothing else is in them, or if the task's facts have them.
        """
        if not self.names_payloads:
            return None
        return annotations.to_pylist()

    @property
    def can_append(self) -> bool:
        """Whether a row's uri identifies its example, so that more rows can be appended."""
        return self.names_payloads
