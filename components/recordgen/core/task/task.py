"""The interface of a task, in four protocols, and the examples that it makes.

:class:`Parsing` reads what an import file says of a row, :class:`Annotations` what that means,
:class:`Payloads` finds files, and :class:`Examples` makes records of all of it. A function that
needs one of them names it as the type of its task.
"""

from __future__ import annotations

from abc import ABC
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from recordgen import storage
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.image_settings import PayloadSettings
from recordgen.core.records import Record, RecordColumn
from recordgen.core.rows.row import CONTENT, Adjustments, PlannedRow, Row, RowBatch, row_name
from recordgen.core.task.annotation import AnnotationError, Merged, RowContent, check_uri
from recordgen.errors import PayloadError, UsageError
from recordgen.features import FeatureSpec
from recordgen.messages import listed
from recordgen.registry import imported
from recordgen.rejects import Reject, RejectCode

if TYPE_CHECKING:
    from recordgen.core.facts import ImageNote, Seen
    from recordgen.core.rows.columns import PlannedBatch


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
        sample: the data of the demo, a :class:`pipelines.samples.Sample`, or None; those of
            Recordgen's own tasks are in pipelines/samples/samples.yaml.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    noun: ClassVar[str]
    reading: ClassVar[str]
    pairing: ClassVar[str | None] = None
    trainer: ClassVar[str | None] = None
    measure: ClassVar[str | None] = None
    sample: ClassVar[str | None] = None

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
#: parts (boxes, spans) have labels, which several rows say, or one row (own parts).
ONE, SEVERAL, PARTS, OWN_PARTS = "one", "several", "parts", "own parts"

#: Those with which several rows add up to one example.
ADDING = (SEVERAL, PARTS)


class Annotations(Declaration):
    """Reads annotations: texts that only the task understands.

    Class attributes:
        labelling: how examples are labelled: :data:`ONE`, :data:`SEVERAL`, :data:`PARTS`,
            :data:`OWN_PARTS` or None.
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
        """Return an annotation as messages show it: its labels, or as it is stored."""
        return listed(self.labels(annotation)) or f"{annotation:.80}"

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


class BuiltExample(NamedTuple):
    """An example, ready to be written."""

    record: tuple[bytes, ...]  # the serialised example, in pieces
    labels: Sequence[str] = ()
    digested: bytes | None = None  # what it adds to its shard's digest; None: the record
    # Why the payload was re-encoded; None if its bytes were passed through.
    reencoded: str | None = None
    image: ImageNote | None = None  # its image; None if it has none
    # Digest of the payload as a trainer sees it, without labels; None if the whole row is the
    # content.
    content: bytes | None = None
    seen: Seen | None = None  # small copy of its image, or its text, if a check needs it
    changes: Mapping[str, int] | None = None  # see Tally; None if there are none


#: Prefixes of names in :attr:`Tally.changes`, before the name of a column of whole numbers.
GAP = "gap:"
INEXACT = "inexact:"
#: Likewise before the name of a feature that not every dataset has.
HAS = "has:"


@dataclass
class Tally:
    """What is counted of some examples: those of a batch, a shard or a split."""

    assigned: int = 0  # number of examples whose row names no split
    # Examples per label; an example with several labels counts for each.
    labels: Counter[str] = field(default_factory=Counter)
    unlabelled: int = 0
    reencoded: Counter[str] = field(default_factory=Counter)  # re-encoded images per reason
    rejects: list[Reject] = field(default_factory=list)
    # Changed annotations by their name in `rows.adjusted` of `dataset.json`. For columns of whole
    # numbers, the number of missing values (GAP), and of values that float32 cannot hold (INEXACT).
    # The number of examples with a feature that not every dataset has (HAS).
    changes: Counter[str] = field(default_factory=Counter)

    def count(self, more: Any) -> None:
        """Add the counts of further examples, whose attributes have the same names."""
        self.assigned += more.assigned
        self.labels.update(more.labels)
        self.unlabelled += more.unlabelled
        self.reencoded.update(more.reencoded)
        self.rejects += more.rejects
        self.changes.update(more.changes)


@dataclass
class BuiltBatch(Tally):
    """Examples of several rows, in their order."""

    examples: int = 0
    records: list[Record] = field(default_factory=list)  # serialised examples, each in pieces
    # Serialised examples (binary [n]) of a task that makes many at a time; they come before
    # `records`.
    column: RecordColumn | None = None
    # Bytes that they add to their shard's digest, in pieces.
    digested: list[bytes | memoryview] = field(default_factory=list)
    # Examples per format, height and width of their image.
    images: Counter[tuple[str, int | None, int | None]] = field(default_factory=Counter)
    payload_bytes: int = 0  # payload bytes of all rows
    facts: Any = None  # the rows' FactsBuilder, for the checks

    def add(self, made: BuiltExample, *, assigned: bool) -> None:
        """Add the example of the next row."""
        self.examples += 1
        self.records.append(made.record)
        self.digested += made.record if made.digested is None else [made.digested]
        self.assigned += assigned
        for label in made.labels:  # update() takes several times as long for a single label
            self.labels[label] += 1
        self.unlabelled += not made.labels
        if made.reencoded is not None:
            self.reencoded[made.reencoded] += 1
        if made.image is not None:
            self.images[made.image[:3]] += 1
        if made.changes:
            self.changes.update(made.changes)


#: Returns a row's payloads. Raises PayloadError if one is refused, StorageError if storage failed.
FetchPayloads = Callable[[], Sequence[bytes]]


class FetchedRow(NamedTuple):
    """A planned row, and all that an example is made of."""

    row: PlannedRow
    payloads: Sequence[bytes]  # of each of its ``stored_uris``
    vocabulary: Vocabulary
    settings: PayloadSettings


def each_row(make_example: Callable[..., BuiltExample]) -> Callable[..., BuiltBatch]:
    """Make :meth:`Examples.make` of a method that makes the example of a :class:`FetchedRow`.

    The method raises PayloadError if a payload is refused.
    """

    @wraps(make_example)
    def make(
        self: Any,
        rows: PlannedBatch,
        payloads: Sequence[FetchPayloads],
        vocabulary: Vocabulary,
        settings: PayloadSettings,
    ) -> BuiltBatch:
        from recordgen.core.facts.columns import ExampleNote, FactsBuilder, content_of

        facts = FactsBuilder()
        built = BuiltBatch(payload_bytes=rows.payload_bytes, facts=facts)
        for number, row in enumerate(rows.rows):
            try:
                fetched = payloads[number]() if payloads else ()
                made = make_example(self, FetchedRow(row, fetched, vocabulary, settings))
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
    batch_rows: ClassVar[int] = 256

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

    def part(self, uri: str, annotation: str | None) -> str:
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


_Parsing = TypeVar("_Parsing", bound="Parsing")


class Parsing(Declaration):
    """Parses what an import file says about a row.

    Class attributes:
        expected: a line of its CSV, for messages.
        columns: accepted header names of an annotation's columns, by role, in the order in which
            :meth:`from_fields` takes them.
        uri_key: the key of a payload's uri in a line of JSONL.
        json_keys: the keys of annotations in a line of JSONL, the task's own key first.
        csv_parser: parser of the lines of its CSV files, a
            :class:`recordgen.formats.row_parser.CsvParser`; None if no CSV holds its rows. JSON
            Lines hold them if there are :attr:`json_keys`.
    """

    expected: ClassVar[str]
    columns: ClassVar[Mapping[str, frozenset[str]]] = {}
    uri_key: ClassVar[str] = ""
    json_keys: ClassVar[tuple[str, ...]] = ()
    csv_parser: ClassVar[str | None] = None

    def for_file(self: _Parsing, read: Callable[[_Parsing], Iterable[object]]) -> _Parsing:
        """Return the task for one pass over the rows of one source, which ``read`` yields."""
        return self

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        """Return the annotation of the fields that follow the path in a CSV line.

        Args:
            fields: stripped, without empty ones at the end.
            adjusted: collects the changes that make the annotation usable.

        Raises: AnnotationError: the annotation cannot be used.
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

    def together(self, items: Iterable[Any]) -> Iterable[Any]:
        """Yield what a format reads, with what takes less time for several pictures at once."""
        return items

    def from_picture(self, picture: Any, adjusted: Adjustments) -> RowContent:
        """Return the row of an image that a document of another tool describes.

        Args and Raises: as :meth:`from_fields`; ``picture`` is a
        :class:`recordgen.subjects.picture.Picture`.
        """
        raise NotImplementedError

    def uri_of(self, record: Mapping[str, Any]) -> str:
        """Return the uri of the row in a line of a JSONL file that cannot be used, or ""."""
        uri = record.get(self.uri_key)
        return uri.strip() if isinstance(uri, str) else ""


class Task(Parsing, Annotations, Payloads, Examples):
    """One task: how its rows are parsed, what they mean, their payloads, and their examples.

    An instance holds the settings that affect it.
    """

    @classmethod
    def of(cls, options: Any) -> Task:
        """Return the task of a run with these :class:`recordgen.options.ConvertOptions`.

        Raises: UsageError: an option does not suit the task.
        """
        return cls()


# Attributes that the class of an installed task must define; the rest has a default.
_NEEDED = ("kind", "noun", "expected", "features", "reading")


def check_declaration(name: str, task: Any) -> None:
    """Check the object of an entry point. Raises: TypeError: it is no complete task."""
    if not (isinstance(task, type) and issubclass(task, Task)):
        raise TypeError(f"a task is a subclass of recordgen.tasks.Task (got {task!r})")
    if getattr(task, "name", None) != name:
        raise TypeError(
            f"the entry point is named {name!r}, and the task {getattr(task, 'name', None)!r}"
        )
    missing = [item for item in _NEEDED if not hasattr(task, item)]
    if task.make is Task.make:
        missing.append("make")
    missing += [] if task.csv_parser or task.json_keys else ["csv_parser"]
    if missing:
        raise TypeError(f"the class {task.__name__} does not define {', '.join(missing)}")


def placing_name(row: Row | RowContent, task: Payloads, folder: str) -> str:
    """Return the text whose hash places a row.

    With :attr:`Task.by_address`, relative uris start in ``folder``, that of the first import file.
    """
    if task.by_address:
        return storage.below_shared(storage.resolve(row.uri, storage.join(folder, "")), folder)
    return row_name(row.uri, row.annotation)


def placing_names(rows: RowBatch, task: Payloads, folder: str) -> Iterator[str]:
    """Return the text whose hash places each row, as :func:`placing_name`."""
    if task.by_address:
        return (placing_name(row, task, folder) for row in rows.rows)
    if not any(rows.uris):  # each row is placed by its whole annotation
        return (annotation or "" for annotation in rows.annotations)
    return map(row_name, rows.uris, rows.annotations)
