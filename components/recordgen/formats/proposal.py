"""The options that are likely to read a file whose rows fit no definition.

    id,breed        ─▶  columns=path=id,label=breed, image_root=train/
    000bec,collie

They are advice, which may be wrong: nothing is read before the user agrees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain

from recordgen import storage, tasks
from recordgen.core.dataset.splits import PUBLISHED_WORDS, is_ml_use
from recordgen.core.dataset.vocabulary import LIST
from recordgen.core.records.numbers import DATE
from recordgen.core.task.task import Task
from recordgen.errors import NotUnderstoodError
from recordgen.formats import field_kinds, proposed_columns
from recordgen.formats import header as headers
from recordgen.formats.field_kinds import (
    NUMBER,
    have_words,
    is_media,
    is_sentence,
    mostly,
    words_of,
)
from recordgen.formats.folder_names import MASKS, PAIRED
from recordgen.formats.header import PATH_COLUMNS, SPLIT_COLUMNS, TEXT_COLUMNS, Given, column_name
from recordgen.formats.image_root import folder_of_images
from recordgen.formats.label_fields import BETWEEN, IS_CLASS, width_of_lists
from recordgen.formats.proposed_columns import MANY, ProposedColumns, form_of_boxes, is_web
from recordgen.tables.roles import BOX_LISTS, LABEL_COLUMNS, LABEL_TEXT, MASK_COLUMNS, Columns

# One row in so many may be wrong.
_FEW_ROWS = 100

# So few columns may hold short texts; MANY are a table, whose texts are names or addresses.
_FEW = 3

# Objects and keys of a JSONL file that are considered: each object may have other keys.
CONSIDERED = 1000

_DATE = re.compile(DATE)
_WHOLE = re.compile(r"\d+(\.0)?")
# The label of an image in a list, and no path, box or several numbers.
_LISTED = re.compile(r"\d+|(?!.*\.\w+$)(?![\d. ]+$)[^\W_][^,/]*")
# A file of another kind, such as a sound.
_OTHER_FILE = re.compile(r".*\.(?!txt)[A-Za-z][A-Za-z0-9]{1,4}")
# A number and its unit, such as 900 CC and $1.50.
_AMOUNT = re.compile(r"\W*\d[\d.,]*(?:[^\d.,][^\d\s]*)?")
# The name of a shape before its points: POLYGON ((5 6, 25 6, 25 21)).
_SHAPE = re.compile(r"\A[A-Z]+(?= ?\()")

# A place as language models write it: <loc0100>.
_PLACE = re.compile(r"<[a-z]+_?\d+>")

# The first role of boxes.
_BOXES = ("xmin", *BOX_LISTS)

# The label of boxes that have none.
_ONE_LABEL = "'object'"


def propose(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    source: str,
    *,
    header: str = "",
    task: Task | None = None,
) -> Mapping[str, str]:
    """Return the options that are likely to read rows, by keyword.

    They are empty if no options read the rows, or if those that do lose what may describe them: a
    second path or text, lists of numbers such as boxes and runs of pixels, objects in objects. Rows
    are without labels only if nothing else is in them.

    Args:
        names: the columns as ``--columns`` names them.
        rows: the first rows below the header.
        source: the file; image names without a folder are looked for beside it.
        header: as in :func:`stop`.
        task: as in :func:`stop`.
    """
    if header and (found := _of_list([names, *rows] if header == "yes" else rows, source)):
        return found
    columns = ProposedColumns(names, rows)
    are_cut = header == "no" and len({*map(len, rows)}) > 1  # texts at their commas
    are_numbers = not header and all(map(str.isdecimal, names))
    # An object whose keys are files, or numbers of rows.
    is_record = not header and (any(map(is_media, names)) or (are_numbers and len(rows) < 2))
    axes = [it for name in names if (it := name.lower().strip("0123456789_")) in ("x", "y")]
    are_points = len(axes) > 4 and len({*axes}) > 1
    if is_record or are_points:
        return {}
    subjects, image_root = _take_subject(columns, source, header)
    is_text = task is not None and task.kind == "text"
    if is_text and columns.roles.keys().isdisjoint({"path", "text"}):
        others = {*_named_labels(columns), *columns.those(NUMBER.fullmatch)}
        columns.take("text", [at for at in columns.rest if at not in others])
    if columns.roles.keys().isdisjoint({"path", "text"}):
        return {} if task or are_cut else _of_table(columns, header)
    columns.take("split", _splits(columns))
    if "path" in columns.roles:
        proposed_columns.take_boxes(columns, image_root or storage.folder_of(source))
    has_labels = _take_labels(columns)
    is_whole = has_labels or all(_is_key(columns.names[at]) for at in columns.rest)
    begins = [value.split()[0] for value in columns.filled[0]] if len(names) == 1 else []
    is_named = not header or bool(task) or column_name(names[0]) in TEXT_COLUMNS
    is_line = bool(begins) and (not is_named or mostly(is_media, begins))  # a text and more
    is_bad_text = "text" in columns.roles and (are_cut or is_line)
    has_one = task is not None and not task.name.endswith("_multi_label")
    are_several = _have_several_labels(columns)
    are_counts = task is None and columns.holds("label", NUMBER.fullmatch)
    is_odd = _loses(columns) or _conflict(columns) or (are_several and (has_one or are_counts))
    if is_bad_text or not is_whole or is_odd or not all(columns.roles.values()):
        return {}
    if _are_pairs(columns, subjects, header) or columns.holds("label", _is_fraction):
        more = columns.roles.keys() - {"split", "text", "label"}
        places = [] if task or more else _targets_of_pairs(columns)
        return _of_table(ProposedColumns(names, rows), header, places) if places else {}
    has_boxes = not columns.roles.keys().isdisjoint(_BOXES)
    labels = columns.filled[columns.places["label"]] if "label" in columns.places else []
    are_joined = not has_boxes and any(BETWEEN in label for label in labels)
    options = {"columns": _spelled(columns.roles, header), "image_root": image_root}
    options |= {"label_separator": BETWEEN} if are_joined and not has_one else {}
    options |= {"task": tasks.ImageMultiLabel.name} if are_several and not task else {}
    options |= {} if has_labels else {"labels": "none"}
    return {name: value for name, value in options.items() if value}


def propose_table(rows: Sequence[Sequence[str]]) -> Mapping[str, str]:
    """Return the options, as :func:`propose`, that are likely to read a table without a header."""
    names = [str(number) for number, _ in enumerate(rows[0], start=1)]
    return _of_table(ProposedColumns(names, rows), "no")


def _of_list(rows: Sequence[Sequence[str]], source: str) -> Mapping[str, str]:
    """Return the options of lines with an image and its label behind a blank; none if other.

    ``1000002 Boeing 707``; the numbers in a file such as ``split1.txt`` may be splits
    """
    pairs = [row[0].split(maxsplit=1) for row in rows if len(row) == 1]
    are_listed = all(len(pair) == 2 and _LISTED.fullmatch(pair[1]) for pair in pairs)
    if not are_listed or len(pairs) < len(rows) or field_kinds.lists_splits(source):
        return {}
    paths = [path for path, _ in pairs]
    root = folder_of_images(paths, source)
    if not root and not all(map(is_media, paths)):
        return {}
    return {"columns": "path=1,label=2", **({"image_root": root} if root else {})}


def _take_subject(columns: ProposedColumns, source: str, header: str) -> tuple[Sequence[int], str]:
    """Give the role of the path or text to a column.

    Returns: all columns that might have it, and the folder of the images; empty if it is unknown.
    """
    count = len(columns.names)
    files = columns.those(is_media)
    longest = sorted(columns.those(_is_text), key=lambda at: -sum(map(len, columns.all[at])))
    texts = [*columns.named(TEXT_COLUMNS), *longest]
    if count <= _FEW:
        texts += columns.those(_is_phrase)
    elif count >= MANY:
        texts = [at for at in texts if not TEXT_COLUMNS.isdisjoint(columns.words[at])]
    addresses = columns.those(is_web)
    sounds = [at for at in columns.those(_OTHER_FILE.fullmatch) if at not in [*files, *addresses]]
    others = {*columns.those(_is_list), *columns.those(_DATE.match), *addresses}
    texts = [at for at in texts if at not in others]
    are_ids = header == "no" and min(map(len, columns.all[0]), default=0) > _FEW
    alone = [at for at in columns.rest if len({*columns.all[at]}) == len(columns.all[at]) > 1]
    alone += columns.named(PATH_COLUMNS)  # the image of several boxes
    keys = [at for at in columns.rest if at in alone or (at == 0 and are_ids)]
    roots = [at for at in keys if folder_of_images(columns.all[at], source)]
    # An image that is there is nearer than its address.
    paths = sorted([*files, *roots], key=lambda at: mostly(is_web, columns.filled[at]))
    if columns.take("path", paths := paths or ([] if texts or sounds else addresses)):
        return files, folder_of_images(columns.all[paths[0]], source)
    if not columns.take("text", texts):
        named = columns.named(headers.FILE_COLUMNS)
        # An id, such as ID_code, identifies the rows of a table, too.
        named = [at for at in named if count < MANY or columns.words[at][0] != "id"]
        columns.take("path", [] if sounds else named)
    return texts, ""


def _is_phrase(value: str) -> bool:
    """Return whether a value is a text, and neither numbers nor an amount."""
    is_number = bool(_AMOUNT.fullmatch(value) or proposed_columns.numbers_in(value))
    return not is_number and field_kinds.likely_kind(value) == "text"


def _targets_of_pairs(columns: ProposedColumns) -> list[int]:
    """Return what a table that keeps both texts of each pair may predict: a label, or a number."""
    label = columns.places["label"]
    is_named = bool(label_names([columns.names[label]]))
    last = sorted([label, *columns.those(NUMBER.fullmatch)], reverse=True)
    return [label] if is_named else last


def _are_pairs(columns: ProposedColumns, subjects: Sequence[int], header: str) -> bool:
    """Return whether a column without a role is the other half of what rows are."""
    beside = [*subjects]
    if header == "no" and "path" in columns.roles:
        beside += columns.those(NUMBER.fullmatch)[1:]
    elif header == "no":
        beside = columns.those(_is_text)
    else:
        named = [columns.names[at] for at in {*subjects}]
        halves = [name for name in named if have_words("columns_of_pairs_of_texts", words_of(name))]
        are_alike = len({tuple(_without_marks(name)) for name in named}) < len(named)
        has_two = len(halves) > 1 or (halves and columns.those(_is_text))
        beside = beside if are_alike or has_two else []
    return not {*beside}.isdisjoint(columns.rest)


def _loses(columns: ProposedColumns) -> bool:
    """Return whether columns without a role may describe the rows."""
    label = column_name(columns.roles.get("label", ""))
    nested = [] if label in LABEL_COLUMNS else columns.those(_is_nested)
    times = [at for at in columns.rest if have_words("times", columns.words[at])]
    numbers = {*columns.those(_are_numbers)} - {*times}
    commas = [[value.count(",") for value in column] for column in columns.all]
    labels = [commas[at] for role, at in columns.places.items() if role == "label"]
    lists = columns.those(LIST.fullmatch)
    tags = [at for at in lists if any(commas[at]) and commas[at] in labels]  # of tokens
    points = columns.named({"x", "y"})
    places = columns.those(_PLACE.search)
    words = {word for at in columns.those(is_sentence) for word in columns.words[at]}
    is_asked = "path" in columns.roles and have_words("columns_of_pairs_of_texts", words)
    ends = {word for at in columns.rest for word in columns.words[at]} & {"begin", "end"}
    are_lost = numbers or nested or tags or places or max(len(points), len(ends)) > 1
    return bool(are_lost or is_asked)


def _conflict(columns: ProposedColumns) -> bool:
    """Return whether rows with labels have no boxes, though others have."""
    places = columns.places
    boxes = [places[role] for role in _BOXES if role in places]
    labels = columns.all[places["label"]] if "label" in places else []
    pairs = [*zip(columns.all[boxes[0]], labels, strict=False)] if boxes else []
    return sum(bool(label) > bool(box) for box, label in pairs) * _FEW_ROWS > len(pairs)


def _have_several_labels(columns: ProposedColumns) -> bool:
    """Return whether rows of one image, which has no boxes, have different labels."""
    if not columns.places.keys() >= {"path", "label"} or {*_BOXES} & columns.places.keys():
        return False
    paths, labels = (columns.all[columns.places[role]] for role in ("path", "label"))
    return 1 < len({*paths}) < len({*zip(paths, labels, strict=False)})  # 1: bytes


def _is_fraction(value: str) -> bool:
    return NUMBER.fullmatch(value) is not None and not value.lstrip("+-").isdecimal()


def _without_marks(name: str) -> Sequence[str]:
    """Return the words of a name that both parts of a pair have.

    ``text_a``, ``text2`` → text; ``image_left`` → image; ``before`` → nothing
    """
    words = words_of(name)
    return [word for word in words if len(word) > 1 and not word.isdecimal() and word not in PAIRED]


def _are_numbers(value: str) -> bool:
    """Return whether a value is several numbers, but not one-hot labels."""
    numbers = proposed_columns.numbers_in(_SHAPE.sub("", value).replace(";", " "))
    return len(numbers) > 1 and not IS_CLASS.keys() >= {*numbers}


def _is_nested(value: str) -> bool:
    return value.startswith("[[") or value.lstrip("[ ").startswith("{")


def _is_list(value: str) -> bool:
    return LIST.fullmatch(value) is not None or _is_nested(value)


def _is_key(name: str) -> bool:
    """Return whether a column of this name identifies a row, or says the size of its image."""
    return have_words("no_labels", [column_name(name)]) or words_of(name)[-1:] == ["id"]


def _take_labels(columns: ProposedColumns) -> bool:
    """Give a role to the columns of labels or masks; return whether there is one."""
    has_boxes = not columns.roles.keys().isdisjoint(_BOXES)
    images = columns.rest if "path" in columns.roles else []
    ids = [at for at in images if columns.words[at][-1:] == ["id"]]
    named, flags = _named_labels(columns), _flags(columns)
    others = [at for at in _labels(columns) or filter(columns.repeats, ids) if at not in flags]
    masks = [at for at in columns.named(MASK_COLUMNS) if at not in columns.those(NUMBER.fullmatch)]
    masks += [at for at in named if at in columns.those(is_media)]
    if len(named) > 1 and {*named} <= {*flags}:
        flags = named
    elif columns.take("mask", masks) or columns.take("label", named):
        labels = columns.filled[columns.places["label"]] if "label" in columns.places else []
        if (width := width_of_lists(labels)) > 1:
            columns.roles["label"] += f"[{BETWEEN.join(map(str, range(width)))}]"
        return True
    if flags and columns.names[0] != "1" and not _ends_with_amount(columns):
        proposed_columns.take_list(columns, "label", flags)
        return True
    amounts = columns.those(_is_fraction) if "text" in columns.roles else []
    if not columns.take("label", others or amounts) and has_boxes:
        columns.roles["label"] = _ONE_LABEL
    return "label" in columns.roles


def _flags(columns: ProposedColumns) -> Sequence[int]:
    """Return the columns of 0 and 1, or of true and false."""
    named = [at for at in columns.rest if not _is_key(columns.names[at])]
    values = {at: {*map(str.lower, columns.filled[at])} for at in named}
    kinds = ({"0", "1", "0.0", "1.0", "-1", "-1.0"}, {"true", "false"})
    found = ([at for at, each in values.items() if each <= kind] for kind in kinds)
    flags = max(found, key=len)
    are_varied = sum(map(columns.is_varied, flags)) * 2 >= len(flags)
    return flags if len(flags) > 1 and are_varied else ()


def _ends_with_amount(columns: ProposedColumns) -> bool:
    """Return whether the last column holds numbers to predict."""
    numbers = [at for at in columns.those(NUMBER.fullmatch) if at in columns.rest[-1:]]
    return any(columns.counts[at] > MANY for at in numbers)


def _spelled(roles: Mapping[str, str], header: str) -> str:
    is_shown = header == "yes" and not all(name.isdecimal() for name in roles.values())
    return str(Columns.of({**roles, **({"header": header} if header and not is_shown else {})}))


def _of_table(
    columns: ProposedColumns, header: str, likely: Sequence[int] = ()
) -> Mapping[str, str]:
    """Return the target of rows without paths and texts; ``likely``: its columns, if known."""
    columns.take("split", _splits(columns))
    last = columns.rest[-1:]
    repeat = [*filter(columns.repeats, last)]
    texts = _labels(columns, are_words=True)
    amounts = [at for at in columns.those(NUMBER.fullmatch) if not _is_key(columns.names[at])]
    if len(texts) > 1 and not repeat and {*last} <= {*amounts}:
        texts, last = [], []  # the target is one of the words, or the amount at the end
    target = [*columns.named(field_kinds.known_words("labels")), *repeat, *texts, *last]
    if header == "no" and _is_class_first(columns):
        target = columns.rest[:1]
    target = [at for at in likely or target if _may_be_target(columns, at)]
    lists = {*columns.those(_are_numbers), *columns.those(_is_list)}
    is_table = len(columns.names) > 1 and not lists and not _are_listed(columns.names)
    if columns.has_namesakes or not is_table or not columns.take("target", target):
        return {}
    return {"columns": _spelled(columns.roles, header)}


def _may_be_target(columns: ProposedColumns, at: int) -> bool:
    """Return whether most rows have a value in a column, and not all the same or their own.

    Only amounts may all differ, or the words of a few rows; ``0,cat`` and ``1,dog`` list classes.
    """
    values, filled = columns.all[at], columns.filled[at]
    is_varied = columns.counts[at] > 1 or len(values) == 1
    are_names = not columns.repeats(at) and not mostly(NUMBER.fullmatch, filled)
    counts = [[str(number) for number, _ in enumerate(values, start)] for start in (0, 1)]
    is_list = len(columns.names) == len(counts) and columns.all[0] in counts
    are_own = are_names and (is_list or len(values) >= MANY)
    is_filled = len(filled) * 2 > len(values)
    return is_varied and is_filled and not are_own and not _is_key(columns.names[at])


def _are_listed(names: Sequence[str]) -> bool:
    """Return whether columns name images by a key, or parts of videos or texts by key and ends."""
    times = {word for name in names for word in words_of(name) if len(words_of(name)) < 3}
    keys = [name for name in names if _is_key(name)]
    are_parts = bool(keys) and {"start", "end"} <= times
    return "target" not in names and (are_parts or any(map(field_kinds.IMAGE_WORD.search, keys)))


def _is_class_first(columns: ProposedColumns) -> bool:
    """Return whether the first column holds classes: words before whole numbers, or their numbers.

    ``A,2,8,3``; ``5,0,0,12`` as MNIST's pixels, ``1,14.23,1065``: the last holds other numbers
    """
    first, *others = [columns.filled[at] for at in columns.rest] or [[]]
    if not all(map(NUMBER.fullmatch, first)):
        are_whole = all(map(str.isdecimal, chain.from_iterable(others)))
        return are_whole and len({*first}) * 2 <= len(first)
    are_numbers = bool(others) and all(map(NUMBER.fullmatch, others[-1]))
    return are_numbers and _number_classes(first) and not _number_classes(others[-1])


def _number_classes(values: Sequence[str]) -> bool:
    """Return whether numbers count from 0 or 1 on, and recur."""
    numbers = {*map(float, values)}
    are_all = max(numbers) - min(numbers) + 1 == len(numbers) and min(numbers) in (0, 1)
    are_few = 1 < len(numbers) <= len(values) // 2
    return are_all and are_few and all(map(float.is_integer, numbers))


def _splits(columns: ProposedColumns) -> list[int]:
    """Return the columns of words of ML_USE: "valid" alone may also be a state."""
    found = [at for at in columns.rest if all(map(is_ml_use, columns.filled[at]))]
    words = {at: {value.lower() for value in columns.filled[at]} for at in found}
    return [at for at in found if not words[at].isdisjoint(PUBLISHED_WORDS)]


def _is_text(value: str) -> bool:
    letters = sum(map(str.isalpha, value))
    return is_sentence(value) and letters * 2 > len(value.replace(" ", ""))


def unknown_columns(
    where: str,
    problem: str,
    images: Sequence[str],
    others: Sequence[str],
    given: Given,
    label: str = "",
) -> NotUnderstoodError:
    """Return the refusal of a file that holds images, whose other columns have no known role."""
    ends = {name: column_name(name.rpartition("/")[2]) for name in images}
    known = MASK_COLUMNS | MASKS | (frozenset() if label else LABEL_COLUMNS)
    mask = next((name for name in images if ends[name] in known), "")
    image = next((name for name in images if name != mask), "")
    splits = [name for name in others if column_name(name.rpartition("/")[2]) in SPLIT_COLUMNS]
    labels = [] if mask else [label] if label else label_names(others)
    texts = [name for name in others if column_name(name) in TEXT_COLUMNS and not image]
    boxes = [name for name in others if have_words("boxes", words_of(name)) and not given.boxes]
    found = {"path": [image], "text": texts[:1], "split": splits[:1], "mask": [mask]}
    forms = {form_of_boxes(name) or "xywh": [name] for name in boxes if len(boxes) == 1}
    is_read = forms.keys() <= {*BOX_LISTS} and len(images) <= len([image, *filter(None, [mask])])
    found |= {**(forms if is_read else {}), "label": labels[:1]}
    named = {**given.roles, **({given.boxes[0]: given.boxes[1:]} if given.boxes else {})}
    roles = {role: names for role, names in {**found, **named}.items() if any(names)}
    columns = str(Columns.of(roles)).replace("path=", "image=", 1)
    is_whole = bool(texts) or (bool(image) and not roles.keys() <= {"path", "split"})
    options = {"columns": columns} if is_whole and is_read else {}
    problem += doubt_about_boxes(columns)
    if image and not options:
        problem += f"; --columns says what they hold, such as image={image},label=NAME"
    return NotUnderstoodError(f"{where}: {problem}", options=options)


def doubt_about_boxes(columns: str) -> str:
    """Return the end of a message about proposed columns; "" if names say what boxes are."""
    boxes = [(form, name) for form, [name, *_] in Columns.of(columns).by_role if form in BOX_LISTS]
    are_unsaid = {name for _, name in boxes if BETWEEN not in name or name[0].isdecimal()}
    unsure = [form for form, name in boxes if name in are_unsaid and not form_of_boxes(name)]
    return "".join(f"; boxes may be {' or '.join(BOX_LISTS)} (taken: {form})" for form in unsure)


def label_names(names: Sequence[str]) -> list[str]:
    """Return the names that say that a column holds labels, the likeliest first."""
    known = [name for name in names if column_name(name) in LABEL_COLUMNS]
    texts = [name for name in names if known and column_name(name) == LABEL_TEXT]
    others = [name for name in names if have_words("labels", words_of(name))]
    return list(dict.fromkeys([*texts, *known, *others]))


def _named_labels(columns: ProposedColumns) -> list[int]:
    """Return the columns that hold labels by their names, unless they hold the same everywhere."""
    flat = [at for at in columns.rest if not mostly(_is_nested, columns.filled[at])]
    places = {columns.names[at]: at for at in reversed(flat)}  # of equal names, the first
    found = [places[name] for name in label_names([columns.names[at] for at in flat])]
    known = columns.named(LABEL_COLUMNS | {LABEL_TEXT})
    return [at for at in found if at in known or columns.is_varied(at)]


def _labels(columns: ProposedColumns, *, are_words: bool = False) -> list[int]:
    """Return the columns that are likely to hold labels, as their values repeat."""
    tests = is_sentence, is_media, is_web, _is_nested, _DATE.match
    others = {at for test in tests for at in columns.those(test)}
    some = [at for at in columns.rest if at not in others and not _is_key(columns.names[at])]
    repeat = [*filter(columns.repeats, some)]
    words = [at for at in repeat if not mostly(NUMBER.fullmatch, columns.filled[at])]
    if are_words:
        return words
    counts = columns.counts
    several = [at for at in repeat if counts[at] > 1]
    whole = [at for at in several if all(map(_WHOLE.fullmatch, columns.filled[at]))]
    # A column alone varies, also by fractions, or has a value for each of a few rows.
    is_only = len(some) == 1 and (counts[some[0]] > 1 if repeat else counts[some[0]] < MANY)
    rare = {at for at in some if counts[at] * 2 > len(columns.filled[at]) >= MANY}
    is_nameless = columns.names[0] == "1"  # of several columns, labels are the fewest names
    ranks = {at: (counts[at] == 1 or at in rare, is_nameless and counts[at]) for at in some}
    return [*(some if is_only else ()), *sorted([*words, *whole], key=ranks.__getitem__)]
