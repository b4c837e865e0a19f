"""The interface of a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.rows.planned import PlannedRow
from recordgen.core.rows.row import Adjustments, is_content_uri
from recordgen.core.task.annotation import AnnotationError, Merged, RowContent, check_uri
from recordgen.core.task.built import BuiltBatch, BuiltExample
from recordgen.errors import PayloadError, UsageError
from recordgen.features import FeatureSpec
from recordgen.options import ConvertOptions
from recordgen.quoting import listed
from recordgen.registry import imported
from recordgen.rejects import Reject, RejectCode

if TYPE_CHECKING:
    from recordgen.core.rows.columns import PlannedBatch
    from recordgen.core.rows.picture import Picture

# Arrow's stubs, where there are any, differ from version to version.
Texts: TypeAlias = Any  # pa.StringArray
Lists: TypeAlias = Any  # pa.ListArray of texts
Sizes: TypeAlias = Any  # pa.Int64Array

#: Returns a row's payloads. Raises PayloadError if one is refused, StorageError if storage failed.
Payloads = Callable[[], Sequence[bytes]]


#: Values of :attr:`Task.labelling`: an example has at most one label, or any number; or its parts
#: (boxes, spans) have labels.
ONE, SEVERAL, PARTS = "one", "several", "parts"

#: Those with which several rows add up to one example.
ADDING = (SEVERAL, PARTS)


class Task(ABC):
    """One task. An instance holds the options that affect the task.

    The class declares the task. Anything that is not its own code is a path,
    ``package.module:name``, that is imported when it is needed (see :meth:`declared`). So
    converting does not import TensorFlow, and reading does not import Beam.

    Class attributes:
        name: its name in ``--task`` and ``dataset.json``.
        kind: kind of its payloads: ``image``, ``text``, ``table`` or ``video``; ``entities`` for
            texts that are read token by token; or a word of its own. Messages and the detection of
            formats use it.
        noun: the word for an example in messages.
        expected: a line of its CSV, for messages.
        columns: accepted header names of an annotation's columns, by role, in the order in which
            :meth:`from_fields` takes them.
        uri_key: the key of a payload's uri in a line of JSONL.
        json_keys: the keys of annotations in a line of JSONL, the task's own key first.
        features: features of its examples.
        labelling: how examples are labelled: :data:`ONE`, :data:`SEVERAL`, :data:`PARTS` or None.
            With ``several`` and ``parts``, the rows of one payload add up to one example, which is
            incomplete if one of them is rejected. Training skips examples without a label, unless
            labels are of parts.
        csv_parser: parser of the lines of its CSV files, a
            :class:`recordgen.formats.row_parser.CsvParser`; None if no CSV holds its rows. JSON
            Lines hold them if there are :attr:`json_keys`.
        reading: how records are read, a :class:`recordgen.reading.kinds.Kind`.
        trainer: the model, a subclass of :class:`recordgen.training.learner.TaskTrainer`, or None.
        measure: the metrics, a :class:`recordgen.training.measures.EvalAccumulator`, or None.
        sample: the data of the demo, a :class:`pipelines.samples.Sample`, or None.
        page: the page of the documentation, or its URL.
        names_payloads: whether a row has a uri that identifies it; else the row holds the whole
            example.
        details_noun: the word for what annotations hold besides labels, see :meth:`details`.
        layout: a function ``(files, options)`` that returns the
            :class:`recordgen.formats.table_layout.Layout` of import files, for a task that detects
            its columns itself; None if its rows have the columns that it declares.
        frames: a function ``(frame, options)`` that returns the
            :class:`recordgen.formats.table_layout.OpenFrame` of a DataFrame.
        by_address: whether payloads are identified and placed by their resolved address, not by
            its spelling in a line, so that the parts of one payload share a split. Planned rows
            then have the uris of :func:`recordgen.core.flow.steps.located`.
        facts: the facts that its examples have, see :mod:`recordgen.core.facts`: checks that need
            them examine them.
        batch_rows: number of rows that a thread makes into examples at a time, unless they are
            large.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    noun: ClassVar[str]
    expected: ClassVar[str]
    columns: ClassVar[Mapping[str, frozenset[str]]]
    uri_key: ClassVar[str]
    json_keys: ClassVar[tuple[str, ...]]
    features: ClassVar[Mapping[str, FeatureSpec]]
    labelling: str | None = None
    csv_parser: ClassVar[str | None] = None
    reading: ClassVar[str]
    trainer: ClassVar[str | None] = None
    measure: ClassVar[str | None] = None
    sample: ClassVar[str | None] = None
    page: ClassVar[str] = ""
    names_payloads: ClassVar[bool] = True
    details_noun: ClassVar[str] = "annotation"
    layout: ClassVar[str | None] = None
    frames: ClassVar[str] = "recordgen.formats.dataframe:open_frame"
    by_address: ClassVar[bool] = False
    facts: ClassVar[Collection[str]] = ()
    batch_rows: ClassVar[int]

    @classmethod
    def declared(cls, what: str) -> Any:
        """Import the object that a class attribute names: ``declared("trainer")``.

        Raises:
            UsageError: the attribute is None, or its object cannot be imported.
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

    @classmethod
    def of(cls, options: ConvertOptions) -> Task:
        """Return the task with the options. Raises: UsageError: one does not suit the task."""
        if cls.labelling != ONE:
            need_mixed_shards(cls.name, options)
        return cls()

    @classmethod
    def wrong_role(cls, roles: Iterable[str]) -> str:
        """Return what is wrong with the roles of columns that options give, or ""."""
        return ""

    def for_file(self) -> Task:
        """Return the task for one pass over the rows of one import file."""
        return self

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        """Return the annotation of the fields that follow the path in a CSV line.

        Args:
            fields: stripped, without empty ones at the end.
            adjusted: collects the changes that make the annotation usable.

        Raises:
            AnnotationError: the annotation cannot be used.
        """
        raise NotImplementedError

    def from_record(
        self, record: Mapping[str, Any], adjusted: Adjustments
    ) -> Sequence[RowContent | AnnotationError]:
        """Return the rows of a line of a JSONL file, one for each example that it names.

        Args and Raises: as :meth:`from_fields`; ``record`` is the parsed line.

        Returns:
            For each example its row, or the error that makes it unusable.
        """
        raise NotImplementedError

    def from_picture(self, picture: Picture, adjusted: Adjustments) -> RowContent:
        """Return the row of an image that a document of another tool describes.

        Args and Raises: as :meth:`from_fields`.
        """
        raise NotImplementedError

    def uri_of(self, record: Mapping[str, Any]) -> str:
        """Return the uri of the row in a line of a JSONL file that cannot be used, or ""."""
        uri = record.get(self.uri_key)
        return uri.strip() if isinstance(uri, str) else ""

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

    def labels(self, annotation: str) -> Sequence[str]:
        """Return the labels of an example, each once."""
        return ()

    def details(self, annotation: str) -> Sequence[Any]:
        """Return what an annotation holds besides labels: boxes, spans, times or values."""
        return ()

    def label_lists(self, annotations: Texts) -> Lists:
        """Return the :meth:`labels` of each annotation; an empty list for a null."""
        import pyarrow as pa  # reading import files does not need Arrow

        said = annotations.dictionary_encode("encode")
        found = [() if text is None else self.labels(text) for text in said.dictionary.to_pylist()]
        return pa.array(found, pa.list_(pa.string())).take(said.indices)

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

    def nearly_agree(self, one: str, other: str) -> bool:
        """Return whether different annotations of one payload mean the same.

        Then the checks do not report a contradiction.
        """
        return False

    def annotations_for_checks(self, annotations: Texts) -> Sequence[str | None] | None:
        """Return the rows' annotations without the payloads that they contain.

        None if nothing else is in them, or if :meth:`make_batch` notes it.
        """
        if not self.names_payloads:
            return None
        return annotations.to_pylist()

    def part(self, annotation: str | None) -> str:
        """Return the part of its payload that a row is about; "" is the whole payload.

        Rows of one part make one example.
        """
        return ""

    def check_uri(self, uri: str) -> str:
        """Return the address of a payload, as :func:`check_uri` does. Raises: AnnotationError."""
        return check_uri(uri)

    def own_sizes(self, uris: Texts, annotations: Texts) -> Sizes:
        """Return the approximate bytes that each row itself adds to its record."""
        import pyarrow.compute as pc  # reading import files does not need Arrow

        return pc.utf8_length(annotations.fill_null("")).cast("int64")

    def stored_uris(
        self, uris: Sequence[str], annotations: Sequence[str | None]
    ) -> Sequence[Sequence[str]]:
        """Return the addresses of the payloads in storage that each row needs."""
        return [(uri,) if uri and not is_content_uri(uri) else () for uri in uris]

    def with_uris(self, annotation: str | None, uris: Mapping[str, str]) -> str | None:
        """Return an annotation with its addresses replaced; ``uris`` maps old ones to new ones."""
        return annotation

    @property
    def can_append(self) -> bool:
        """Whether a row's uri identifies its example, so that more rows can be appended."""
        return self.names_payloads

    @abstractmethod
    def make(
        self,
        row: PlannedRow,
        payloads: Sequence[bytes],
        vocabulary: Vocabulary,
        options: ConvertOptions,
    ) -> BuiltExample:
        """Make an example of a row.

        Args:
            row: the planned row.
            payloads: the bytes of each of its :meth:`stored_uris`, in their order.
            vocabulary: numbers the labels.
            options: how to check and change the payload.

        Raises:
            PayloadError: the payload is refused.
        """

    def make_batch(
        self,
        rows: PlannedBatch,
        payloads: Sequence[Payloads],
        vocabulary: Vocabulary,
        options: ConvertOptions,
    ) -> BuiltBatch:
        """Make examples of several rows.

        Args:
            rows: the planned rows.
            payloads: the payloads of each row; empty if rows of this task have none.
            vocabulary: numbers the labels.
            options: how to check and change payloads.

        Raises:
            StorageError: storage failed.
        """
        from recordgen.checks.facts import FactsBuilder

        built = BuiltBatch(payload_bytes=rows.payload_bytes)
        facts = FactsBuilder()
        for number, row in enumerate(rows.rows):
            try:
                fetched = payloads[number]() if payloads else ()
                made = self.make(row, fetched, vocabulary, options)
            except PayloadError as exc:
                built.rejects.append(Reject(row.source, row.line, row.uri, exc.code, exc.message))
                facts.refuse()
            else:
                built.add(made, assigned=row.assigned)
                seen = made.picture, made.text, made.is_gray, made.colours, made.frames
                facts.add(row.sort_key, made.content, made.image, *seen)
        built.facts = facts
        return built

    def digested(self, record: bytes) -> bytes:
        """Return the bytes that a serialised example adds to its shard's digest.

        Raises:
            ValueError: Recordgen did not write the example.
        """
        return record

    @abstractmethod
    def row_of(self, values: Mapping[str, Sequence[Any]]) -> RowContent:
        """Return the row, as exact uri and annotation, from which features were made.

        Raises:
            KeyError: a feature that holds one of them is missing.
        """

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


# Attributes that the class of an installed task must define; the rest has a default.
_NEEDED = ("kind", "noun", "expected", "columns", "uri_key", "json_keys", "features", "batch_rows")


def check_declaration(name: str, task: Any) -> None:
    """Check the object of an entry point. Raises: TypeError: it is no complete task."""
    if not (isinstance(task, type) and issubclass(task, Task)):
        raise TypeError(f"a task is a subclass of recordgen.tasks.Task (got {task!r})")
    if getattr(task, "name", None) != name:
        raise TypeError(
            f"the entry point is named {name!r}, and the task {getattr(task, 'name', None)!r}"
        )
    missing = [item for item in (*_NEEDED, "reading") if not hasattr(task, item)]
    missing += sorted(getattr(task, "__abstractmethods__", ()))
    missing += [] if task.csv_parser or getattr(task, "json_keys", None) else ["csv_parser"]
    if missing:
        raise TypeError(f"the class {task.__name__} does not define {', '.join(missing)}")


def need_mixed_shards(task: str, options: ConvertOptions) -> None:
    """Refuse options that need one label per example. Raises: UsageError."""
    if options.stratify == "label":
        raise UsageError(
            f"stratify=label needs one label per example, which {task} does not have; leave it out"
        )
    if options.shard_by == "label":
        raise UsageError(
            f"shard_by=label needs one label per example, which {task} does not have; "
            f"use shard_by=hash"
        )
