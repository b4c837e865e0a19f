"""Options → the settings of a conversion: nothing after this reads an option."""

from __future__ import annotations

from collections.abc import Sequence

from recordgen.core.conversion import Conversion, Labels, Shards, Splits
from recordgen.core.dataset.splits import NO_EVAL, without_eval
from recordgen.core.dataset.vocabulary import AUTO_LABELS, NO_LABELS, LabelForms
from recordgen.core.facts import MEASURES, ROWS
from recordgen.core.image_settings import PayloadSettings
from recordgen.core.task.task import ONE, SEVERAL, Task
from recordgen.formats.format import Format
from recordgen.formats.import_file import ImportFile
from recordgen.formats.row_reader import RowReader
from recordgen.options import ConvertOptions
from recordgen.payloads.fetching import PayloadStore
from recordgen.registry import FORMATS
from recordgen.tasks import TASKS, task_for

_ALONE = (
    "pass a folder that also holds train, or use --split names=yes if there is none on purpose; "
    "--split names=no assigns splits where only names of folders say them"
)


def conversion_of(options: ConvertOptions, files: Sequence[ImportFile] = ()) -> Conversion:
    """Return what a run with the options does; its task and format are decided.

    ``files`` are the import files if their rows must leave some for ``train``.

    Raises: UsageError: an option does not suit the task.
    """
    task = task_for(options)
    return Conversion(
        task=task,
        splits=splits_of(options, files),
        labels=labels_of(options, task),
        shards=shards_of(options),
        payloads=payloads_of(options),
        store=store_of(options),
        reader=RowReader(options),
        max_reject_fraction=options.max_reject_fraction,
        threads=options.threads,
        recorded=options.recorded(),
    )


def splits_of(options: ConvertOptions, files: Sequence[ImportFile] = ()) -> Splits:
    """Return how rows of files get their splits.

    If ``fail_on`` names NO_EVAL, the plan fails: no payload is read for nothing.
    """
    selection, refusal = options.selection, ""
    if NO_EVAL in selection.fatal & selection.codes:
        refusal = f"{without_eval(options.eval_from)}; fail_on=none writes the dataset without it"
    return Splits(
        seed=options.seed,
        fractions=options.split.fractions,
        share=options.eval_share,
        grouping=options.grouping,
        by_content=options.splits_by_content,
        by_looks=options.finds_alike,
        stratifies=options.stratify == "label",
        duplicates=options.duplicates,
        drops_unnamed=options.missing_split == "drop",
        without_eval=refusal,
        without_train=_ALONE if _may_lose_train(options, files) else "",
    )


def _may_lose_train(options: ConvertOptions, files: Sequence[ImportFile]) -> bool:
    """Return whether splits are those of folders or documents, which nobody chose for this run."""
    has_rows = FORMATS.get(options.format, Format).has_columns
    is_meant = has_rows or options.split.names == "yes" or any(file.split for file in files)
    return bool(files) and not is_meant


def labels_of(options: ConvertOptions, task: Task) -> Labels:
    """Return how the labels of a task get their numbers."""
    missing = ""
    if task.labelling in (ONE, SEVERAL) and options.labels != NO_LABELS:
        found = FORMATS.get(options.format, Format)
        missing = (
            f"and {options.task} needs them; {found.how_to_label}, or use labels=none for data to "
            f"predict"
        )
    return Labels(
        mode=options.labels,
        vocabulary=options.vocabulary,
        missing=missing,
        forms=_forms(options, task),
    )


def _forms(options: ConvertOptions, task: Task) -> LabelForms | None:
    """Return what labels may be mistaken for; None if an option says that they are names.

    The target of a table has rules of its own, see ODD_COLUMN.
    """
    if options.labels != AUTO_LABELS or options.schema or not task.names_payloads:
        return None
    has_fields = FORMATS.get(options.format, Format).has_columns
    several = f"{task.kind}_multi_label"
    return LabelForms(
        several=several if has_fields and several in TASKS else "",
        is_several=task.name == several,
        is_alone=task.labelling == ONE and not options.vocabulary,
    )


def shards_of(options: ConvertOptions) -> Shards:
    """Return how examples are divided into files."""
    return Shards(
        bytes=options.shard_bytes,
        by_label=options.shard_by == "label",
        compression=options.compression,
    )


def payloads_of(options: ConvertOptions) -> PayloadSettings:
    """Return how payloads are checked and stored."""
    has_rows = FORMATS.get(options.format, Format).has_columns  # then the encoding is that of rows
    return PayloadSettings(
        check=options.check,
        limit=options.limit,
        image_size=options.image_size,
        resize=options.resize,
        encode=options.encode,
        needs_looks=MEASURES in options.selection.needs,
        needs_rows=ROWS in options.selection.needs,
        text_encoding="" if has_rows else options.encoding,
    )


def store_of(options: ConvertOptions) -> PayloadStore:
    """Return access to the payloads that rows may reach."""
    looks = PayloadSettings(limit=options.limit, needs_looks=True)
    alike = looks if options.finds_alike else None
    return PayloadStore(options.limit, options.access, alike, options.threads)
