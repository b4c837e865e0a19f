"""What annotations mean: labels, agreement, and how they are shown."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from recordgen.core.task.annotation import AnnotationError, Merged
from recordgen.errors import UsageError
from recordgen.messages import listed
from recordgen.registry import imported
from recordgen.rejects import RejectCode


class Declaration(ABC):
    """The names of a task.

    Anything that is not a task's own code is a path, ``package.module:name``, that is imported when
    it is needed (see :meth:`declared`). So converting does not import TensorFlow, and reading does
    not import Beam.

    Class attributes:
        name: its name in ``--task`` and ``dataset.json``.
        kind: kind of its payloads: ``image``, ``text``, ``table`` or ``video``; ``entities`` for
            texts that are read token by token; or a word of its own. Messages and the detection of
            formats use it.
        noun: the word for an example in messages.
        reading: how records are read, a :class:`recordgen.reading.kinds.Kind`.
        pairing: what :meth:`recordgen.access.source.Source.pairs` returns, a function that
            :class:`recordgen.access.pairs.Pairing` describes, or None.
        trainer: the model, a subclass of :class:`recordgen.training.learner.TaskTrainer`, or None.
        measure: the metrics, a :class:`recordgen.training.measures.EvalAccumulator`, or None.
        sample: the data of the demo, a :class:`pipelines.samples.Sample`, or None.
        page: the page of the documentation, or its URL.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    noun: ClassVar[str]
    reading: ClassVar[str]
    pairing: ClassVar[str | None] = None
    trainer: ClassVar[str | None] = None
    measure: ClassVar[str | None] = None
    sample: ClassVar[str | None] = None
    page: ClassVar[str] = ""

    @classmethod
    def declared(cls, what: str) -> Any:
        """Import the object that a class attribute names: ``declared("trainer")``.

        Raises: UsageError: the attribute is None, or its object cannot be imported.
        """
        path = getattr(cls, what)
        if path is None:
            raise UsageError(f"the task {cls.name} has no {what}")
        try:
            return imported(path)
        except (ImportError, AttributeError) as exc:
            raise UsageError(
                f"the {what} of the task {cls.name} cannot be imported ({path}): {exc}"
            ) from exc


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

        Raises: AnnotationError: they contradict each other.
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


def count_labels(annotations: Texts, task: Annotations) -> Mapping[str, int]:
    """Return the number of examples per label; one with several labels counts for each."""
    import pyarrow.compute as pc  # reading import files does not need Arrow

    labels = task.label_lists(annotations.combine_chunks()).flatten()
    return {item["values"]: item["counts"] for item in pc.value_counts(labels).to_pylist()}


def first_labels(annotations: Texts, task: Annotations) -> Texts:
    """Return each example's label, or "" if it has none; examples have at most one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = task.label_lists(annotations.combine_chunks())
    has_label = pc.greater(pc.list_value_length(lists), 0)
    at = pc.if_else(has_label, lists.offsets[:-1], pa.scalar(None, pa.int32()))
    return pc.fill_null(lists.values.take(at), "")
