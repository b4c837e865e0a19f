"""What annotations mean: labels, agreement, and how they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

from recordgen.core.task.annotation import AnnotationError, Merged
from recordgen.core.task.declaration import Declaration
from recordgen.quoting import listed
from recordgen.rejects import RejectCode

# Arrow's stubs, where there are any, differ from version to version.
Texts: TypeAlias = Any  # pa.StringArray
Lists: TypeAlias = Any  # pa.ListArray of texts

#: Values of :attr:`Annotations.labelling`: an example has at most one label, or any number; or its
#: parts (boxes, spans) have labels.
ONE, SEVERAL, PARTS = "one", "several", "parts"

#: Those with which several rows add up to one example.
ADDING = (SEVERAL, PARTS)


class Annotations(Declaration):
    """Reads annotations: texts that only the task understands.

    Class attributes:
        labelling: how examples are labelled: :data:`ONE`, :data:`SEVERAL`, :data:`PARTS` or None.
            With ``several`` and ``parts``, the rows of one payload add up to one example, which is
            incomplete if one of them is rejected. Training skips examples without a label, unless
            labels are of parts.
        details_noun: the word for what annotations hold besides labels, see :meth:`details`.
    """

    labelling: str | None = None
    details_noun: ClassVar[str] = "annotation"

    def labels(self, annotation: str) -> Sequence[str]:
        """Return the labels of an example, each once."""
        return ()

    def label_lists(self, annotations: Texts) -> Lists:
        """Return the :meth:`labels` of each annotation; an empty list for a null."""
        import pyarrow as pa  # reading import files does not need Arrow

        said = annotations.dictionary_encode("encode")
        found = [() if text is None else self.labels(text) for text in said.dictionary.to_pylist()]
        return pa.array(found, pa.list_(pa.string())).take(said.indices)

    def details(self, annotation: str) -> Sequence[Any]:
        """Return what an annotation holds besides labels: boxes, spans, times or values."""
        return ()

    def merge(self, annotations: Sequence[str | None]) -> Merged:
        """Merge the annotations of several rows of one payload.

        Args:
            annotations: at least two, in the order of their lines.

        Raises:
            AnnotationError: they contradict each other.
        """
        found = sorted({text for text in annotations if text is not None})
        if len(found) > 1:
            raise AnnotationError(
                RejectCode.CONFLICTING_LABELS,
                f"one {self.noun}, several labels: {listed(found, self.shown)}",
            )
        return Merged(found[0] if found else None, len(annotations) - 1)

    def contradicts(self, annotation: str, stored: str | None) -> bool:
        """Return whether a new row's annotation contradicts the stored one of its payload."""
        return annotation != stored

    def nearly_agree(self, one: str, other: str) -> bool:
        """Return whether different annotations of one payload mean the same.

        Then the checks do not report a contradiction.
        """
        return False

    def shown(self, annotation: str) -> str:
        """Return an annotation as messages show it."""
        return f"{annotation:.80}"

    def preview(self, uri: str, annotation: str | None) -> tuple[str, str | None]:
        """Return what a preview shows of a row: its payload, and its annotation or labels.

        The annotation is empty if the row has no label, and None if the payload is the whole row.
        """
        if annotation is None or (self.labelling is not None and not self.labels(annotation)):
            return uri, ""
        return uri, self.shown(annotation)
