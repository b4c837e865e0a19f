"""What the rows of import files are, by the definitions of docs/formats.md; or the refusal.

Without options, a file of rows has one of these forms as a whole:

* **Named columns.** The first line names a column of paths or of texts, and every other column has
  a known role, too; or all others hold only 0 and 1, one for each class.
* **AutoML's rows.** Each line is ``[ML_USE]``, a path or a text, and its annotation. A path has the
  suffix of an image or a video, a scheme or a slash. Texts that hold commas are in quotes, which a
  text in quotes shows, or a line that begins with ML_USE.

      TRAIN,gs://bucket/1.jpg,cat         an image and its label
      TEST,"Good, and cheap.",praise      a text and its label
      1.jpg,10,20,40,60,cat               stops: a box is before its label
* **AutoML's objects.** Each line is a JSON object with the keys that Vertex AI documents.

Everything else stops, with options that are likely to read it (:mod:`recordgen.formats.proposal`).
Whoever names the column of paths or texts, or the task, ignores other columns on purpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain

from recordgen import tasks
from recordgen.core.dataset.splits import TRAIN, is_ml_use, near_ml_use
from recordgen.core.dataset.vocabulary import AUTO_LABELS, NO_LABELS
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.task import Task
from recordgen.errors import NotUnderstoodError, SourceError
from recordgen.formats import field_kinds, label_fields
from recordgen.formats import header as headers
from recordgen.formats.field_kinds import NUMBER, field_at, is_media, is_sentence, kind_of, mostly
from recordgen.formats.format import Format
from recordgen.formats.header import Candidate, Given, Head, Line, find_columns, find_path
from recordgen.formats.image_root import folder_of_images
from recordgen.formats.label_fields import IS_CLASS, have_several, separated
from recordgen.formats.refusal import some_of, stop
from recordgen.formats.row_parser import row_parser
from recordgen.formats.split_names import split_in_path
from recordgen.options import ConvertOptions
from recordgen.registry import OF_OTHER_RECORDS
from recordgen.tables.roles import BOX_ROLES, LABEL_COLUMNS, MASK_COLUMNS, SEGMENT_ROLES, Columns
from recordgen.tasks import task_for

# --- the task -----------------------------------------------------------------------------------


def decide(heads: Sequence[Head], options: ConvertOptions, format_: Format) -> Candidate:
    """Return the only task that rows can have.

    Raises: NotUnderstoodError: they fit no definition as a whole, or those of several tasks.
    """
    found: dict[str, list[Candidate]] = {}
    for head in _widest_first(heads):
        with _alone(head, heads):
            found[head.path] = [*_tasks_in(head, options, format_)]
    in_order = chain.from_iterable(found[head.path] for head in heads)
    readings = settle(in_order) or [Candidate(OF_OTHER_RECORDS, "", 0)]
    if len(readings) > 1:
        shown = "; ".join(f"{each.task}: {each.reason}" for each in readings)
        problem = f"rows have more than one task ({shown}); keep them apart, or choose one"
        most = max(readings, key=lambda each: each.lines)
        stop(heads[0], problem, options={"task": most.task})
    [reading] = readings
    if reading.lines:
        return reading
    return reading._replace(reason=f"{heads[0].path if heads else ''}: no line has an annotation")


def settle(readings: Iterable[Candidate]) -> list[Candidate]:
    """Return the tasks that remain; a single line among ten is malformed, and no other task."""
    found = list(readings)
    counts: Counter[str] = Counter()
    first: dict[str, Candidate] = {}
    for each in [each for each in found if each.lines] or found[:1]:
        counts[each.task] += each.lines
        first.setdefault(each.task, each)
    if counts.total() >= LINES_AROUND_A_MISTAKE:
        most = max(counts.values())
        counts = Counter({task: n for task, n in counts.items() if n > 1 or n == most})
    subsumed = {SUBSUMES.get(task) for task in counts}
    return [first[task]._replace(lines=n) for task, n in counts.items() if task not in subsumed]


def _tasks_in(head: Head, options: ConvertOptions, format_: Format) -> Iterator[Candidate]:
    _check_first_line(head)
    if head.header is not None:
        yield task_of_columns(head, Given.of(options))
    elif format_.has_headers:
        yield from tasks_of_lines(head)
    else:
        from recordgen.formats.automl_jsonl import of_objects  # lines need none

        yield from of_objects(head)


def task_of_columns(head: Head, given: Given) -> Candidate:
    """Return the task of rows whose columns have known names, or roles in ``--columns``.

    Raises: NotUnderstoodError: no column is known to hold paths or texts, or one of each is.
    """
    header = head.header or ()
    texts = find_columns(header, headers.TEXT_COLUMNS)
    path = find_path(header, headers.FILE_COLUMNS)
    if "path" in given.roles and "text" not in given.roles:
        texts = []
    elif "text" in given.roles and "path" not in given.roles:
        path = headers.NOWHERE
    if texts and path < len(header):
        both = f"{head.names[path]} and {head.names[texts[0]]}"
        stop(head, f"both {both} may be what is labelled")
    if not texts and path >= len(header):
        stop(head, "no column is known to hold paths or texts")
    if texts and mostly(is_media, head.filled(texts[0])):
        stop(head, f"the column {head.names[texts[0]]} names images or videos, and no texts")
    task, what = _task_of_roles(head, texts, path, given)
    where = "--columns" if given.roles and not head.classes else head.where
    return Candidate(task.name, f"{where} names {what}", max(1, len(head.lines)))


def _task_of_roles(
    head: Head, texts: Sequence[int], path: int, given: Given
) -> tuple[type[Task], str]:
    header = head.header or ()
    kinds = {*map(kind_of, head.filled(path))}
    is_image = "image" in kinds or any(map(field_kinds.IMAGE_WORD.search, header[path : path + 1]))
    labels = headers.same_named(header, find_columns(header, LABEL_COLUMNS))
    several = _have_several(head, labels)
    segments = tasks.VideoClassification.columns
    has_segments = all(find_columns(header, segments[role]) for role in SEGMENT_ROLES)
    if tasks.ObjectDetection.has_header(header):
        return tasks.ObjectDetection, "the columns of a box"
    if texts or (kinds == {"text"} and not is_image):
        return _task_of_texts(head, several=several), "the columns of texts"
    if kinds == {"video"} or (has_segments and not is_image):
        return tasks.VideoClassification, "the columns of a segment"
    masks = find_columns(header, MASK_COLUMNS)
    is_mask = any(is_media(it) for at in masks for it in head.filled(at)) and not labels
    if is_mask or ("mask" in given.roles and "label" not in given.roles):
        return tasks.ImageSegmentation, "the columns of images and masks"
    what = "one-hot columns of images" if head.classes else "the columns of images"
    return (tasks.ImageMultiLabel if several else tasks.ImageClassification), what


def _have_several(head: Head, labels: Sequence[int]) -> bool:
    """Return whether rows have several labels, in columns, lists or fields that are divided."""
    if head.classes:
        return have_several([line.fields for line in head.lines], head.classes)
    if len(labels) > 1 or not head.lists.isdisjoint(labels):
        return True
    values = (value for at in labels for value in head.filled(at))
    return any(len(separated([value], head.label_separator)) > 1 for value in values)


def _task_of_texts(head: Head, *, several: bool) -> type[Task]:
    if several:
        return tasks.TextMultiLabel
    header = head.header or ()
    scores = [value for at in find_columns(header, {"sentiment"}) for value in head.filled(at)]
    if scores and not find_columns(header, LABEL_COLUMNS) and all(map(is_sentiment, scores)):
        return tasks.TextSentiment
    return tasks.TextClassification


def _check_first_line(head: Head, task: Task | None = None) -> None:
    """Check that a file begins with a row, or a header. Raises: NotUnderstoodError.

    ``task``: the given one, as in :func:`recordgen.formats.refusal.stop`.
    """
    if head.in_doubt:
        problem = "the first line names no known column of paths or texts, and no row is like it"
        stop(head, problem, header="yes", task=task)


def check_columns(
    heads: Sequence[Head], options: ConvertOptions, format_: Format, *, is_given: bool
) -> None:
    """Check that every column has a role, and holds what its role says.

    ``is_given``: the user has set the task.

    Raises:
        NotUnderstoodError: a column has no role, or holds something else.
        SourceError: a file has a header and no rows.
    """
    given, task = Given.of(options), task_for(options)
    for head in _widest_first(heads):
        with _alone(head, heads):
            _check_first_line(head, task if is_given else None)
            if is_given:
                check_known(head, heads, task, options)
            if head.header is None and format_.has_headers:
                check_lines(head, task, is_given=is_given)
            elif head.lines:
                check_roles(head, task, given, is_given=is_given)
        if format_.has_headers:
            decided = replace(given, header="yes") if head.has_header else given
            row_parser(task, Adjustments()).begin(head.rows[0], decided, head.where)
        elif given.roles:
            from recordgen.formats import named_records  # a CSV has no keys

            named_records.check_roles(task, given)
        elif is_given and len(head.objects) >= _LINES_ALIKE:
            from recordgen.formats.automl_jsonl import of_objects

            with _alone(head, heads):
                list(of_objects(head, task))
    if options.labels == AUTO_LABELS:
        _check_mixture(heads)
    if format_.has_headers and not any(head.lines for head in heads):
        head = heads[0]
        raise SourceError(f"{head.where}: a header ({','.join(head.rows[0]):.200}) without rows")


def _has_columns_of(head: Head, task: Task) -> bool:
    """Return whether a header names a column of a task, such as labels; or there is no header."""
    if head.header is None or head.classes:
        return True
    columns = row_parser(task, Adjustments()).columns_of(head.header)
    return any(columns[role] for role in task.columns)


def check_known(head: Head, heads: Sequence[Head], task: Task, options: ConvertOptions) -> None:
    """Check that no unknown column may hold what a given task needs, unless some of a file does.

    Raises: NotUnderstoodError.
    """
    is_closed = bool(Given.of(options).roles) or options.labels == NO_LABELS
    if is_closed or any(_has_columns_of(each, task) for each in heads):
        return
    if head.columns is not None and row_parser(task, Adjustments()).unused(head.columns, Given()):
        problem = f"no column is known to hold {' or '.join(task.columns)}"
        if "mask" in task.columns:  # which have known names
            stop(head, problem, options={})
        stop(head, problem, task=task)


def _check_mixture(heads: Sequence[Head]) -> None:
    """Check that no file numbers the classes that another one names. Raises: NotUnderstoodError.

    Files that share a label have the same classes: ``1, 2`` and ``1, 2, 3+``.
    """
    kinds: dict[bool, dict[str, Head]] = {True: {}, False: {}}
    for head in heads:
        places = find_columns(head.header or (), LABEL_COLUMNS)
        labels = dict.fromkeys((label for at in places for label in head.filled(at)), head)
        kinds[all(map(NUMBER.fullmatch, labels))] |= labels
    numbers, names = kinds[True], kinds[False]
    if numbers and names and numbers.keys().isdisjoint(names):
        [number, *_], [name, *_] = numbers.values(), names.values()
        what = f"the labels are numbers, and those of {name.path} are names; write the same in both"
        stop(number, f"{what}, or keep both as they are", options={"labels": "text"})


def _widest_first(heads: Sequence[Head]) -> list[Head]:
    """Return heads such that the file with the labels is checked before a test set without."""
    widths = {head.path: max(map(len, head.rows[:1]), default=0) for head in heads}
    return sorted(heads, key=lambda head: (-widths[head.path], split_in_path(head.path) != TRAIN))


@contextmanager
def _alone(head: Head, heads: Sequence[Head]) -> Iterator[None]:
    """Propose to convert a file that stops alone, if the columns of others differ."""
    try:
        yield
    except NotUnderstoodError as exc:
        columns, root = exc.options.get("columns", ""), exc.options.get("image_root")
        options, roles = {**exc.options}, Columns.of(columns).roles
        named = {*chain.from_iterable(roles.values())} or {*_keys(head)}
        is_alike = all(_keys(each) == _keys(head) or named <= {*_keys(each)} for each in heads)
        if "header=no" in columns:
            is_alike = len({len(row) for each in heads for row in each.rows[:1]}) == 1
        elif is_alike and any(find_columns([*_keys(each)], LABEL_COLUMNS) for each in heads):
            options.pop("labels", "")  # other files may have them
        if root and is_alike and len(heads) > 1:
            is_alike = {_root_of(each, *roles.get("path", ("",))) for each in heads} == {root}
        source = exc.source if is_alike or len(heads) == 1 else head.path
        problem = NotUnderstoodError(exc.reason, shown=exc.shown, options=options, source=source)
        raise problem from None


def _root_of(head: Head, path: str) -> str:
    """Return the folder of the images that a column names, which has a name or a number."""
    names = [*_keys(head)]
    at = int(path) - 1 if path.isdecimal() else names.index(path) if path in names else len(names)
    return folder_of_images(head.filled(at), head.path)


def _keys(head: Head) -> Collection[str]:
    """Return the names of the columns of a file, or the keys of its first object."""
    return head.objects[0][1].keys() if head.objects else next(iter(head.rows), ())


def check_roles(head: Head, task: Task, given: Given, *, is_given: bool) -> None:
    """Check that each column of a header has a role, and holds what its role says.

    Raises: NotUnderstoodError.
    """
    header = head.header or ()
    parser = row_parser(task, Adjustments())
    columns = parser.columns_of(header)
    headers.check_twice(header, columns)
    words = {word for at in columns["split"] for word in head.filled(at)}
    if words and not any(map(is_ml_use, words)):
        problem = f"the split holds {some_of(words)}; write TRAIN, VALIDATION or TEST instead"
        stop(head, problem, options={})
    is_chosen = is_given or not given.roles.keys().isdisjoint({"path", "text"})
    if head.columns is not None and not is_chosen:
        unused = parser.unused(head.columns, given)
        if extra := [name for name in unused if not given.overrides(name)]:
            stop(head, f"no role is known for the columns {', '.join(extra):.200}")
    if columns.get("xmin") and not columns["label"] and not is_chosen:
        stop(head, "no column is known to hold the labels of the boxes")
    if not columns.get("xmin"):
        _check_flags(head, columns.get("label", ()))


def _check_flags(head: Head, labels: Sequence[int]) -> None:
    """Check that labels are not 0 and 1, in several columns or in lists: classes have names."""
    values = [value for at in labels if at not in head.classes for value in head.filled(at)]
    are_flags = len(labels) > 1 and {*map(str.lower, values)} <= IS_CLASS.keys()
    if values and (are_flags or label_fields.width_of_lists(values) > 1):
        stop(head, "labels are 0 and 1, as one-hot labels are")


# --- AutoML's rows without a header --------------------------------------------------------------

#: Among so many lines, a single one that reads differently is malformed.
LINES_AROUND_A_MISTAKE = 10

# Fewer lines may be alike by chance.
_LINES_ALIKE = 3

# A longer number is no sentiment; Python refuses to read thousands of digits.
_MOST_DIGITS = 19

#: Tasks with several labels read all rows of the tasks with one label, too.
SUBSUMES = {"image_multi_label": "image_classification", "text_multi_label": "text_classification"}


def tasks_of_lines(head: Head) -> Iterator[Candidate]:
    """Yield the task of each of AutoML's rows. Raises: NotUnderstoodError: they are none."""
    lines = [line._replace(kind=_kind(line)) for line in head.lines]
    good = [line for line in lines if line.kind]
    if len(good) * 2 < len(lines) or not good:
        odd = next(line for line in lines if not line.kind)
        problem = f"{odd.subject!r:.60} is no path and no text"
        if "/" in odd.subject and not odd.labels:
            problem += "; if its folder is its class, pass the folder of the images"
        stop(head, problem, header="no", options={} if _is_other(odd.subject) else None)
    _check_texts(head, good)
    first = good[0].kind
    yield Candidate(_plain(first).name, "", 0)
    labels = [label for line in good for label in line.labels]
    are_scores = first == "text" and bool(labels) and all(map(is_sentiment, labels))
    for line in good:
        yield from _task_of_line(line, first, are_scores=are_scores)


def _kind(line: Line) -> str:
    """Return the kind of a line; a few words are a text in quotes, or behind ML_USE."""
    if _is_other(line.subject):
        return ""
    is_marked = line.has_ml_use or line.is_quoted
    is_text = is_marked and field_kinds.likely_kind(line.subject) == "text"
    return line.kind or ("text" if is_text else "")


def _is_other(subject: str) -> bool:
    """Return whether a field names a file of rows, or holds several paths or numbers."""
    parts = subject.split()
    are_several = len(parts) > 1 and all(is_media(it) or NUMBER.fullmatch(it) for it in parts)
    return are_several or subject.lower().endswith((".jsonl", ".ndjson", ".json"))


def _check_texts(head: Head, lines: Sequence[Line]) -> None:
    """Check that a text is in quotes, or follows ML_USE: otherwise all may hold bare commas.

    Raises: NotUnderstoodError.
    """
    texts = [it for it in lines if it.kind == "text" and not field_kinds.is_file(it.subject)]
    are_marked = any(line.has_ml_use or line.is_quoted for line in texts)
    if len(texts) * LINES_AROUND_A_MISTAKE > len(lines) and not are_marked:
        stop(head, "no text is in quotes or follows ML_USE", header="no")


def _task_of_line(line: Line, first: str, *, are_scores: bool) -> Iterator[Candidate]:
    kind = line.kind
    if kind == "video":
        yield Candidate(_plain(kind).name, f"{line.where} names a video, or a list of them")
    elif line.labels:
        task, what = _task_of_fields(line, kind, are_scores=are_scores)
        yield Candidate(task.name, f"{line.where} has {what}")
    elif kind != first:
        yield Candidate(_plain(kind).name, f"{line.where} is one")


def _plain(kind: str) -> type[Task]:
    of_kind = {"text": tasks.TextClassification, "video": tasks.VideoClassification}
    return of_kind.get(kind, tasks.ImageClassification)


def _task_of_fields(line: Line, kind: str, *, are_scores: bool) -> tuple[type[Task], str]:
    count = len(line.labels)
    if kind == "text":
        if count > 1:
            return tasks.TextMultiLabel, f"a text and {count} labels"
        if are_scores:
            remedy = f"use --task {tasks.TextClassification.name} if the numbers are classes"
            return tasks.TextSentiment, f"a text and its sentiment; {remedy}"
        return tasks.TextClassification, "a text and its label"
    if len(line.annotation) > 1 and tasks.ObjectDetection.has_box(line.annotation):
        return tasks.ObjectDetection, "a box"
    if count > 1:
        return tasks.ImageMultiLabel, f"{count} labels"
    if is_media(line.labels[0]):
        return tasks.ImageSegmentation, "an image and its mask"
    return tasks.ImageClassification, "one label"


def is_sentiment(label: str) -> bool:
    """Return whether a label is a whole number that AutoML takes for a sentiment."""
    from recordgen.tasks.texts.task import MAX_SENTIMENT  # only rows of texts need it

    is_whole = label.isdecimal() and label.isascii() and len(label) < _MOST_DIGITS
    return is_whole and int(label) <= MAX_SENTIMENT


def check_lines(head: Head, task: Task, *, is_given: bool) -> None:
    """Check that fields behind a path or a text are labels, and only those."""
    numbers = sum(NUMBER.fullmatch(line.subject) is not None for line in head.lines)
    if numbers * 2 > len(head.lines):
        stop(head, "numbers are in the place of paths and texts", header="no")
    first = [line for line in head.lines if not line.has_ml_use and line.place == 1]
    first = [line for line in first if not near_ml_use(line.fields[0])]
    if len(first) * 2 > len(head.lines):
        stop(head, f"{first[0].fields[0]!r:.60} is before the path, and no ML_USE", header="no")
    labels = {line.subject for line in head.lines}
    are_behind = all(not it.kind and any(map(is_sentence, it.annotation[:1])) for it in head.lines)
    if task.kind == "text" and are_behind and 0 < len(labels) * 2 <= len(head.lines):
        given = task if is_given else tasks.TextMultiLabel()
        stop(head, f"{some_of(labels)} are before texts, and recur", header="no", task=given)
    is_by_place = type(task) in (tasks.ObjectDetection, tasks.VideoClassification)
    labelled = [line.annotation for line in head.lines if line.labels]
    if is_by_place and labelled and sum(map(_is_other_box, labelled)) * 2 > len(labelled):
        problem = "four numbers beside a label are no corners as AutoML has; others need a header"
        stop(head, problem, header="no")
    bare = [line.annotation for line in head.lines if not line.has_ml_use]
    width = max(map(len, bare), default=0)
    for at in range(int(is_by_place), width):
        words = {field_at(fields, at) for fields in bare} - {""}
        if words and all(map(is_ml_use, words)) and (width > 1 or len(words) > 1 or not is_given):
            stop(head, f"other fields hold {some_of(words)}, which name splits", header="no")
    if not is_given:
        _check_several(head, task)
        labels = {label for line in head.lines for label in line.labels}
        if field_kinds.lists_splits(head.path) and labels <= {"0", "1", "2"}:
            stop(head, f"the file's name says that {some_of(labels)} are splits", options={})


def _is_other_box(fields: Sequence[str]) -> bool:
    """Return whether four numbers are before a label, or behind it without AutoML's places."""
    numbers = [NUMBER.fullmatch(field) is not None for field in fields]
    is_before = len(fields) > 4 and numbers[:5] == [*[True] * 4, False] and fields[4] != ""
    return is_before or (len(fields) == 5 and all(numbers[1:]))


def _check_several(head: Head, task: Task) -> None:
    """Check that several fields can only be labels: their number differs, and labels recur."""
    counts = Counter(len(line.labels) for line in head.lines if line.labels)
    if type(task).name not in SUBSUMES or counts.total() < _LINES_ALIKE:
        return
    width, most = counts.most_common(1)[0]
    is_fixed = width > 1 and most * LINES_AROUND_A_MISTAKE > counts.total() * 9
    labels = Counter(label for line in head.lines for label in {*line.labels})
    once = sum(count == 1 for count in labels.values()) * 10 > len(labels)
    if is_fixed or (task.kind == "text" and once):
        places = {(label, at) for line in head.lines for at, label in enumerate(line.annotation)}
        repeats = any(len({*line.annotation}) < len(line.annotation) for line in head.lines)
        numbers = [*filter(NUMBER.fullmatch, labels)]
        is_box = width == len(BOX_ROLES) and len(numbers) == len(labels)
        are_labels = len({label for label, _ in places}) < len(places) and not (is_box or repeats)
        problem = f"up to {max(counts)} fields behind the first may be labels or other columns"
        if labels.keys() <= IS_CLASS.keys():
            stop(head, "fields are 0 and 1, and no header names their classes", options={})
        are_words = repeats and width > 2 and not numbers
        options = {"task": task.name} if are_labels else {} if are_words else None
        if repeats and width == 2:
            problem = "each of two fields behind the first may be the label; label= takes one"
        stop(head, problem, options=options, header="no")
