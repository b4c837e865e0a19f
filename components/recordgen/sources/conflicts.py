"""What speaks against how rows are read: labels that may be splits, numbers, lists or texts."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from recordgen.dataset.splits import ML_USE_WORDS, PUBLISHED_WORDS, is_ml_use
from recordgen.options import ConvertOptions
from recordgen.sources.evidence import (
    BRACKETED,
    LINES_AROUND_A_MISTAKE,
    NUMBER,
    Line,
    ends_sentence,
    kind_of,
    odd_first_line,
)
from recordgen.sources.header import (
    PATH_COLUMNS,
    TEXT_COLUMNS,
    TEXT_FILE_COLUMNS,
    Given,
    column_name,
    find_columns,
    find_path,
    find_split,
)
from recordgen.sources.heads import Head
from recordgen.sources.row_parser import at as field_at
from recordgen.tasks import TASKS, ObjectDetection, Tabular, VideoClassification
from recordgen.tasks.image_classification import LABEL_COLUMNS

# Fewer rows may be alike by chance.
_ROWS_ALIKE = 3

# A label of as many words is a sentence, or part of one.
_WORDS_OF_A_SENTENCE = 6


def find_conflict(heads: Sequence[Head], options: ConvertOptions, *, is_given: bool) -> str:
    """Return why the rows may not be what the task takes them for; "" if nothing speaks against it.

    Args:
        heads: the first lines.
        options: with the task.
        is_given: the user has named the task.
    """
    task = TASKS[options.task]
    if options.input_format != "csv" or task.kind not in ("image", "text", "video"):
        return ""
    subject = "text" if task.kind == "text" else "path"
    given = Given.of(options)
    bare = [line for head in heads for line in head.bare_lines]
    for head in heads:
        has_header = len(head.lines) < len(head.rows)
        if not (given.settles_header or has_header) and (odd := odd_first_line(head.rows)):
            example = shlex.quote(_example(head, subject))
            return (
                f"{head.where}: this line may be a header: {odd} ({','.join(head.rows[0]):.200}); "
                f"say --header no if it is a row; if it is a header, say --header yes and which "
                f"column holds what, such as --columns {example}, or --task {Tabular.name} for a "
                f"table"
            )
        if not head.lines:
            continue
        if not given.roles and (split := unnamed_split(head)):
            return split
        if not given.roles.get("label") and (several := several_labels(head)):
            return several
        is_named = head.header is not None and not given.roles.get("label")
        if is_named and not is_given and (odd := odd_column(head)):
            return f"{head.where}: {odd}; if they are labels, say --task {options.task}"
    if given.roles or not bare:
        return ""
    if odd := labels_first(bare):
        return odd
    if task is ObjectDetection or task is VideoClassification:
        return split_behind(bare)
    if split := split_in_labels(bare, whole_column=is_given):
        return split.replace("SUBJECT", subject)
    if is_given:
        return ""
    if task.kind == "text" and (odd := unquoted_commas(bare)):
        return odd
    if odd := odd_labels(bare, several=task.repeats is not None):
        return (
            f"{odd}; say --task {options.task} if they are labels, or which column holds the "
            f"label: --columns {subject}=1,label=2"
        )
    return ""


def _example(head: Head, subject: str) -> str:
    """Return what ``--columns`` may say about a header that nobody knows."""
    names, rest = [*head.rows[0], "…"], head.lines[1:]
    at = _subject_column(rest)
    if kind_of((*rest[0].fields, "")[at]) == "text":
        subject = "text"
    return f"{subject}={names[at]},label={names[0 if at else 1]}"


def odd_column(head: Head) -> str:
    """Return what is odd about labels under a header that calls them labels."""
    header = head.header or ()
    labels = {
        line.fields[at]
        for at in find_columns(header, LABEL_COLUMNS)
        for line in head.lines
        if at < len(line.fields) and line.fields[at]
    }
    if labels and all(map(is_ml_use, labels)):
        return f"all labels are words of ML_USE ({', '.join(sorted(labels)):.80})"
    return not_labels(labels)


def unnamed_split(head: Head) -> str:
    """Return what to do where a header names no split, and a column holds nothing else."""
    header = head.header or ()
    if not header or find_split(header) < len(header):
        return ""
    known = [*find_columns(header, LABEL_COLUMNS), find_path(header)]
    for at, name in enumerate(header):
        words = {line.fields[at] for line in head.lines if at < len(line.fields)} - {""}
        # "valid" may be a state, and "dev" a team: one published word must be there.
        if at in known or not words or not all(map(is_ml_use, words)):
            continue
        if any(word.lower() in PUBLISHED_WORDS for word in words):
            path = find_path(header, PATH_COLUMNS | TEXT_FILE_COLUMNS)
            texts = find_columns(header, TEXT_COLUMNS)
            role, column = ("text", texts[0]) if texts else ("path", path)
            return (
                f"{head.where}: the column {name!r} holds words of ML_USE "
                f"({_some(sorted(words))}), which name splits; if it is the split, say --columns "
                f"{shlex.quote(f'split={name}')}; if it is not, name another one: --columns "
                f"{shlex.quote(f'{role}={header[column]}')}"
            )
    return ""


def several_labels(head: Head) -> str:
    """Return what to do where two columns may hold the label, and divide the rows differently.

    The number and the name of a class do not: either will do.
    """
    header = head.header or ()
    found = find_columns(header, LABEL_COLUMNS)
    names = {column_name(header[at]): at for at in reversed(found)}
    rows = [tuple(field_at(line.fields, at) for at in names.values()) for line in head.lines]
    if len({len(set(rows)), *(len(set(values)) for values in zip(*rows, strict=True))}) < 2:
        return ""
    shown = [header[index] for index in sorted(names.values())]
    return (
        f"{head.where}: the columns {' and '.join(shown)} may hold the label, and differ; say "
        f"which one does: --columns {shlex.quote(f'label={shown[-1]}')}"
    )


def labels_first(lines: Sequence[Line]) -> str:
    """Return what to do where labels stand before their texts or paths; "" if they do not."""
    at = int(all(line.has_ml_use for line in lines))
    if any(line.has_ml_use > at or kind_of((*line.fields, "", "")[at]) for line in lines):
        return ""
    pairs = [line.fields[at : at + 2] for line in lines if len(line.fields) > at + 1]
    first, second = ({pair[at] for pair in pairs} for at in (0, 1))
    kinds = [kind for _, field in pairs if (kind := kind_of(field))]
    is_sure = len(kinds) > 1 and len(set(kinds)) == 1 and len(kinds) * 2 > len(lines)
    # Words such as TRIAN are misspelt, and their rows are rejected one by one.
    misspelt = (get_close_matches(word.lower(), ML_USE_WORDS, n=1, cutoff=0.7) for word in first)
    if not is_sure or len(first) > len(second) or any(misspelt):
        return ""
    kind = kinds[0]
    role = "text" if kind == "text" else "path"
    split = "split=1," if at else ""
    if len(first) == len(pairs) and all(map(NUMBER.fullmatch, first)):
        return (
            f"column {at + 1} reads as the number of the row and column {at + 2} as the {role}; "
            f"say --columns {split}{role}={at + 2},label={at + 3}"
        )
    return (
        f"column {at + 1} reads as the label ({_some(sorted(first))}) and column {at + 2} as the "
        f"{role}; say --columns {split}label={at + 1},{role}={at + 2}"
    )


def split_in_labels(lines: Sequence[Line], *, whole_column: bool = False) -> str:
    """Return what to do where a column of labels holds words of ML_USE; "" if none does.

    A line that begins with ML_USE has said its split; its labels may be such words.

    Args:
        lines: those of a file.
        whole_column: only report a column that holds nothing else, beside a column of labels.
    """
    bare = [line for line in lines if not line.has_ml_use]
    words = {label for line in bare for label in line.labels if is_ml_use(label)}
    if not words:
        return ""
    width = max(len(line.fields) for line in bare)
    filled = {
        at: {line.fields[at] for line in bare if at < len(line.fields)} - {""}
        for at in range(1, width)
    }
    splits = [at for at, values in filled.items() if values and all(map(is_ml_use, values))]
    others = [at for at in filled if at not in splits]
    if whole_column and not (len(splits) == 1 and others and len(bare) > 1):
        return ""
    if len(splits) == 1 and others:
        subject = _subject_column(bare)
        roles = [f"SUBJECT={subject + 1}", f"split={splits[0] + 1}"]
        roles += [f"label={at + 1}" for at in (0, *others) if at != subject]
        where = f"column {splits[0] + 1} holds words of ML_USE"
        remedy = f"if it is the split, say --columns {','.join(roles)}"
        if any(ObjectDetection.has_box(line.fields[2:]) for line in bare):
            remedy = "if it is the split, let each row begin with it: TRAIN,PATH,LABEL,BOX"
    else:
        where = "labels are words of ML_USE"
        remedy = "say --columns SUBJECT=1,label=2 if they are labels, or begin each row with ML_USE"
    return f"{where} ({_some(sorted(words))}), which name splits; {remedy}"


def _subject_column(lines: Sequence[Line]) -> int:
    """Return the column of paths or texts: the first in which each field reads as one."""
    for at in range(max(len(line.fields) for line in lines)):
        if all(kind_of((*line.fields[at:], "")[0]) for line in lines):
            return at
    return 0


def split_behind(lines: Sequence[Line]) -> str:
    """Return what to do where ML_USE stands behind the path of a box or a segment; "" if not."""
    rows = [line.fields for line in lines if not line.has_ml_use and len(line.fields) > 1]
    for at in range(2, max(map(len, rows), default=0)):
        words = {row[at] for row in rows if at < len(row)} - {""}
        if words and all(map(is_ml_use, words)):
            return (
                f"column {at + 1} holds words of ML_USE ({_some(sorted(words))}), which name "
                f"splits; let each row begin with it, as in TRAIN,PATH,LABEL"
            )
    return ""


def odd_labels(lines: Sequence[Line], *, several: bool) -> str:
    """Return what is odd about the labels of lines without a header; "" if nothing is.

    Args:
        lines: those of all files.
        several: a line may have several labels; else those that do are rejected.
    """
    labelled = [line.labels for line in lines if several or line.labels[1:] == []]
    distinct = {label for labels in labelled for label in labels}
    if odd := not_labels(distinct):
        return odd
    numbers = sorted(label for label in distinct if NUMBER.fullmatch(label))
    words = sorted(distinct - set(numbers))
    if numbers and words:
        return f"some labels are numbers ({_some(numbers)}) and some are words ({_some(words)})"
    if len(labelled) >= _ROWS_ALIKE:
        always = set(labelled[0]).intersection(*labelled[1:])
        if always and (len(distinct) > 1 or always <= set(numbers)):
            return f"every row has the label {min(always)!r}, so it tells nothing"
    return ""


def not_labels(labels: Iterable[str]) -> str:
    """Return why some of the labels can hardly be labels, also where a header calls them so."""
    found = sorted(labels)
    if bracketed := [label for label in found if BRACKETED.fullmatch(label)]:
        return f"labels stand in brackets, as lists and boxes do ({_some(bracketed)})"
    return ""


def unquoted_commas(lines: Sequence[Line]) -> str:
    """Return what to do where labels are parts of texts whose commas nobody quoted.

    Labels that stand in quotes, or behind several texts, are labels, also if they are sentences.
    """
    behind = Counter(label for line in lines for label in set(line.labels))
    labelled = [line for line in lines if line.labels]
    parts = [
        (line, label)
        for line in labelled
        for label in line.labels
        if not line.is_quoted
        and behind[label] == 1
        and (len(label.split()) >= _WORDS_OF_A_SENTENCE or ends_sentence(label))
    ]
    several = [line for line in labelled if len(line.labels) > 1]
    if not parts and len(labelled) >= LINES_AROUND_A_MISTAKE and len(several) > 1:
        # Labels of a text are shared with others; the end of a text is not.
        once = [next((n for n in line.labels if behind[n] == 1), None) for line in several]
        if all(once):
            parts = [(line, str(n)) for line, n in zip(several, once, strict=True)]
    if not parts or (len(parts) == 1 and len(labelled) >= LINES_AROUND_A_MISTAKE):
        return ""
    line, label = parts[0]
    return (
        f"{line.where}: the label {label!r:.60} reads as part of a text; quote texts that hold "
        f"commas, and write labels behind them; if it is a label, a header such as "
        f"split,text,label says so"
    )


def _some(values: Sequence[str]) -> str:
    shown = ", ".join(f"{value:.30}" for value in values[:3])
    return shown if len(values) <= 3 else f"{shown}, …"
