"""The values of other tools' JSON: parsed to a declared depth, and checked where they are used.

Each check raises a ValueError that names the value, which costs the example that has it.

A large document is read item by item, in little memory::

    {"images": [{"id": 1}, {"id": 2}], "info": {"year": 2024}}
    →  ("images", {"id": 1}), ("images", {"id": 2}), ("info", {"year": 2024})

``json.load`` takes 2.9 GB for a document of 505 MB; a window over the text takes 0.1 GB, and less
than half of the time.
"""

from __future__ import annotations

import codecs
import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import IO, Any

from recordgen.core.limits import JSON_DEPTH, JSON_ITEM_CHARACTERS
from recordgen.errors import NotUnderstoodError, SourceError
from recordgen.formats import foreign_formats
from recordgen.formats.field_kinds import NUMBER, kind_of
from recordgen.formats.header import names_payloads
from recordgen.subjects.picture import is_number

_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_INNERMOST = re.compile(r"[\[{][^\[\]{}]*[\]}]")


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises: ValueError: it is none, or is nested too deep."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    check_depth(text, 0, len(text))
    return value


def check_depth(text: str, begin: int, end: int) -> None:
    """Check how deep the value in a part of a JSON text is nested. Raises: ValueError."""
    if text.count("[", begin, end) + text.count("{", begin, end) <= JSON_DEPTH.most:
        return
    rest = _TEXT.sub("", text[begin:end])
    for _ in range(JSON_DEPTH.most):
        rest = _INNERMOST.sub("", rest)
    if "[" in rest or "{" in rest:
        raise _too_deep()


def _too_deep() -> ValueError:
    """Return the error about a value that is nested too deep."""
    return ValueError(f"a value has more than {JSON_DEPTH.most} {JSON_DEPTH.what}")


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """Return an object. Raises: ValueError: it is something else."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be an object (got {value!r:.80})")
    return value


def items(value: Any, what: str) -> Sequence[Any]:
    """Return the items of a list; none if it is null. Raises: ValueError: it is something else."""
    if not isinstance(value, list | None):
        raise ValueError(f"{what} must be a list (got {value!r:.80})")
    return value or ()


def text(value: Any, what: str) -> str:
    """Return a text without blanks around it. Raises: ValueError: it is none, or empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} must be a text (got {value!r:.80})")
    return value.strip()


def numbers(value: Any, names: Sequence[str], what: str) -> Sequence[float]:
    """Return the numbers with these names in an object. Raises: ValueError: one is missing."""
    found: list[Any] = [mapping(value, what).get(name) for name in names]
    if not all(map(is_number, found)):
        raise ValueError(f"{what} needs the numbers {', '.join(names)} (got {value!r:.80})")
    return found


# --- the items of a large document ---------------------------------------------------------------

_CHUNK = 1 << 20
_BLANKS = " \t\r\n"
_COMMA = re.compile(rf"[{_BLANKS}]*,[{_BLANKS}]*").match

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|"[\s\S]*\Z|[{}\[\]:,]', re.DOTALL)

# Deeper keys do not identify a format, and documents may be nested to any depth.
_DEPTH = 5

_decode = json.JSONDecoder().raw_decode


def top_items(file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """Yield each key of a JSON object with its value, a list as a pair for each of its items.

    Raises:
        ValueError: it is no JSON object, is not UTF-8, or an item is too large or nested too deep.
    """
    window = _Window(file)
    window.take("{")
    if window.peek() == "}":
        return
    while True:
        key = window.value()
        if not isinstance(key, str):
            raise ValueError(f"a key must be a text (got {key!r:.40})")
        window.take(":")
        if window.peek() != "[":
            yield key, window.value()
        else:
            yield from zip(repeat(key), _items(window))
        if window.peek() == "}":
            return
        window.take(",")


def list_items(file: IO[bytes]) -> Iterator[Any]:
    """Yield each item of a JSON list. Raises: as :func:`top_items`."""
    yield from _items(_Window(file))


def _items(window: _Window) -> Iterator[Any]:
    window.take("[")
    while window.peek() != "]":
        yield from window.values()
        if window.peek() != "]":
            window.take(",")
    window.take("]")


class _Window:
    """The part of a text that has been read and not yet used."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._is_over = False

    def peek(self) -> str:
        """Return the next character that is not blank; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _BLANKS:
                self._at += 1
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def take(self, expected: str) -> None:
        """Skip a character. Raises: ValueError: another one follows."""
        if self.peek() != expected:
            found = self._text[self._at : self._at + 20]
            raise ValueError(f"expected {expected!r} (got {found!r})")
        self._at += 1

    def value(self) -> Any:
        """Return the next value. Raises: ValueError."""
        self.peek()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except RecursionError:
                raise _too_deep() from None
            except ValueError:
                # The value may only be cut off. The window doubles, so the time stays linear.
                if not self._more(len(self._text) - self._at):
                    raise
                continue
            if end == len(self._text) and self._more():  # the end of a number may be missing
                continue
            check_depth(self._text, self._at, end)
            self._at = end
            return value

    def values(self) -> Iterator[Any]:
        """Yield the next value, and those after it in the window. Raises: ValueError."""
        yield self.value()
        while (comma := _COMMA(self._text, self._at)) is not None:
            try:
                value, end = _decode(self._text, comma.end())
            except (ValueError, RecursionError):
                return
            if end == len(self._text):
                return
            check_depth(self._text, self._at, end)
            self._at = end
            yield value

    def _more(self, least: int = 0) -> bool:
        """Read more of the text; return False at its end. Raises: ValueError."""
        if self._is_over:
            return False
        self._text, self._at = self._text[self._at :], 0
        JSON_ITEM_CHARACTERS.check(len(self._text))
        data = self._file.read(max(_CHUNK, least))
        self._is_over = not data
        self._text += self._decoder.decode(data, final=not data)
        return True


def key_paths(text: str) -> frozenset[str]:
    """Return the key paths of the first value in a JSON text, which may be cut off anywhere.

    A path joins the keys of the enclosing objects with dots; lists add nothing:
    ``{"images": [{"id": 1, "file_na`` → ``images``, ``images.id``.
    """
    found: set[str] = set()
    path: list[str] = []
    key = ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == ":":
            if len(path) <= _DEPTH:
                found.add(".".join(filter(None, (*path, key))))
            continue
        if token in "{[":
            path.append(key)
        elif token in "}]":
            del path[-1:]
            if not path:
                break
        key = token[1:-1]  # empty for a sign
    return frozenset(found)


# --- rows ----------------------------------------------------------------------------------------

# Objects that are checked before the first is given.
_FIRST = 1000


def is_document(head: bytes) -> bool:
    """Return whether JSON is one document, instead of an object in each line."""
    text = head.removeprefix(BOM_UTF8).lstrip()
    if not text.startswith(b"{"):
        return text.startswith(b"[")
    line, _, rest = text.partition(b"\n")
    try:
        first = json_value(line)
    except ValueError:  # the object goes on in the next line
        return True
    is_alone = not rest.lstrip().startswith(b"{")
    return is_alone and all(isinstance(value, dict | list) for value in first.values())


def json_rows(raw: IO[bytes], begin: bytes, path: str) -> Iterator[Any]:
    """Yield the objects of JSON lines, of a list, or of a document as pandas writes it.

    ``begin`` is how the file begins. A line that is no JSON is given as a text.

    Raises: SourceError: a document is cut off, or holds no rows.
    """
    if not is_document(begin):
        return _json_lines(raw)
    if form := foreign_formats.of_file(begin):
        raise form.error(path)
    is_list = begin.removeprefix(BOM_UTF8).lstrip().startswith(b"[")
    found = map(_by_place, list_items(raw)) if is_list else _by_column(raw, path)
    records = _checked(found, path)
    first = list(islice(records, _FIRST))
    if others := [record for record in first if not isinstance(record, dict)]:
        raise _no_rows(path, f"with an item that is no object (got {others[0]!r:.80})")
    return chain(first, records)


def _by_place(item: Any) -> Any:
    """Return the item of a list; of a list of values, an object with their numbers from 1."""
    return {str(at): it for at, it in enumerate(item, 1)} if isinstance(item, list) else item


def _no_rows(path: str, problem: str) -> NotUnderstoodError:
    """Return the refusal of a JSON document that holds no rows."""
    remedy = "write a list of objects: pandas.DataFrame(rows).to_json(path, orient='records')"
    return NotUnderstoodError(f"{path}: this is one JSON document, {problem}; {remedy}")


def _json_lines(raw: IO[bytes]) -> Iterator[Any]:
    """Yield the object of each line that is not blank; a line without one as it is."""
    for line in raw:
        text = line.removeprefix(BOM_UTF8).strip()
        if text:
            try:
                yield json_value(text)
            except ValueError:
                yield text.decode("utf-8", "replace")


def _checked(items: Iterator[Any], path: str) -> Iterator[Any]:
    """Yield items. Raises: SourceError: the document ends before them."""
    try:
        yield from items
    except NotUnderstoodError:
        raise
    except ValueError as exc:
        raise SourceError(f"{path}: this is no whole JSON document: {exc}") from exc


def _by_column(raw: IO[bytes], path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a document as pandas writes it: with a column, or a row, under each key.

    Or ``columns`` or a ``schema`` name the values of the rows in ``data``; the key of a schema is
    the index of the rows, which is no column.
    """
    values: dict[str, Mapping[str, Any]] = {}
    names: list[str] = []
    index: Sequence[str] = ()
    row = 0
    for name, value in top_items(raw):
        if name == "schema" and isinstance(value, dict) and "fields" in value and not values:
            index = items(value.get("primaryKey"), "primaryKey")
            fields = [mapping(it, "a field").get("name") for it in items(value["fields"], "fields")]
            names = [str(it) if is_number(it) else text(it, "a name") for it in fields]
        elif name == "columns" and (isinstance(value, str) or is_number(value)) and not values:
            names.append(str(value))
        elif name == "data" and names:
            row += 1
            if isinstance(value, dict):
                yield {key: it for key, it in value.items() if key not in index}
            elif isinstance(value, list) and len(value) == len(names):
                yield dict(zip(names, value, strict=True))
            else:
                found = len(value) if isinstance(value, list) else 1
                raise _no_rows(path, f"whose row {row} has {found} instead of {len(names)} values")
        elif isinstance(value, dict) and name not in values and not names:
            values[name] = value
        elif name != "index" or not names:
            raise _no_rows(path, f"whose key {name!r:.80} does not hold a value for each row")
    yield from _of_keys(values, path)


def _of_keys(values: Mapping[str, Mapping[str, Any]], path: str) -> Iterable[Mapping[str, Any]]:
    """Return the rows of objects; the keys that are numbers are those of the rows.

    So are all others, if those inside name a column of paths or texts, and they are no paths.
    Columns may have numbers, too, so keys of fewer rows than columns decide nothing.
    """
    if not any(values.values()):
        return ()
    name, first = next(iter(values.items()))
    are_rows, are_columns = (all(map(NUMBER.fullmatch, keys)) for keys in (values, first))
    are_names = not any(NUMBER.fullmatch(key) or kind_of(key) for key in values)
    if are_names and names_payloads([*first]) and not names_payloads([*values]):
        return values.values()
    if are_rows == are_columns or (are_rows and len(values) < len(first)):
        raise _no_rows(path, f"in which {name!r:.80} may name a row or a column")
    if are_rows:
        return values.values()
    if odd := [name for name, column in values.items() if column.keys() != first.keys()]:
        raise _no_rows(path, f"whose key {odd[0]!r:.80} does not hold a value for each row")
    return ({name: column[it] for name, column in values.items()} for it in first)
