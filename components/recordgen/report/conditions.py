"""Conditions on examples: ``label=cat and (code=LEAK or not width>=64)``.

A comparison names a column, an operator and a value. ``=``, ``!=``, ``<``, ``<=``, ``>`` and
``>=`` compare; ``~`` searches a text for a regular expression. A value with spaces or operators
needs quotes. ``not`` binds most tightly, then ``and``, then ``or``.

An example may have several values in a column, such as labels: one match is enough. ``!=`` is the
opposite of ``=``: no value is equal. A missing value equals nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.errors import UsageError, did_you_mean
from recordgen.quoting import listed

Mask: TypeAlias = "npt.NDArray[np.bool_]"

_TOKEN = re.compile(
    r"""\s*(?:(?P<operator><=|>=|!=|[=<>~()])"""
    r"""|(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<word>[^\s()<>=!~"']+)|(?P<end>$)|(?P<other>.))""",
    re.DOTALL,
)
_JOINING = ("and", "or", "not")
_NUMERIC: Mapping[str, Any] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "!=": pc.equal,  # inverted by _compare
}
_OPERATORS = (*_NUMERIC, "~")

# A condition is typed by hand; deeper nesting would only exhaust Python's stack.
_DEEPEST = 50


class Values(NamedTuple):
    """The values of a column.

    Attributes:
        array: numbers or texts (pa.Array).
        rows: the example of each value; None if each example has one, in order.
        known: all possible values; empty if any value is possible.
    """

    array: Any
    rows: npt.NDArray[np.intp] | None = None
    known: Collection[str] = ()


class _Token(NamedTuple):
    kind: str
    text: str
    at: int  # its first character
    condition: str


#: Returns a mask of the matching examples, given the values of each column and the number of
#: examples. Raises UsageError: there is no such column, or the comparison does not suit it.
Condition: TypeAlias = "Callable[[Mapping[str, Values], int], Mask]"


def parse_condition(text: str) -> Condition:
    """Parse a condition. Raises: UsageError: wrong syntax; the message shows where."""
    return _Parser(text).parse()


def _compare(
    name: _Token, operator: _Token, given: _Token, columns: Mapping[str, Values], count: int
) -> Mask:
    """Return a mask of the examples that match one comparison; see :data:`Condition`."""
    if name.text not in columns:
        hint = did_you_mean(name.text, columns)
        _fail(name, f"no column is named {name.text!r}{hint}; there are {listed(columns, str)}")
    values, rows, known = columns[name.text]
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        hits = _compare_numbers(values, name.text, operator, given)
    else:
        hits = _compare_texts(values, known, name.text, operator, given)
    found: Mask = np.asarray(hits.fill_null(False), np.bool_)
    if rows is not None:
        fits = np.zeros(count, np.bool_)
        fits[rows[found]] = True
        found = fits
    return ~found if operator.text == "!=" else found


def _compare_numbers(values: Any, name: str, operator: _Token, given: _Token) -> Any:
    if operator.text == "~":
        _fail(operator, f"~ searches text, but {name} is a number")
    try:
        number = float(given.text)
    except ValueError:
        _fail(given, f"{name} is compared with a number (got {given.text!r})")
    return _NUMERIC[operator.text](values.cast(pa.float64()), number)


def _compare_texts(
    values: Any, known: Collection[str], name: str, operator: _Token, given: _Token
) -> Any:
    if operator.text in ("=", "!="):
        if known and given.text not in known:
            hint = did_you_mean(given.text, known, f"; there are {listed(known, str)}")
            _fail(given, f"no {name} is {given.text!r}{hint}")
        return pc.equal(values, given.text)
    if operator.text != "~":
        _fail(operator, f"{name} is a text: compare it with =, != or ~")
    try:
        return pc.match_substring_regex(values, pattern=given.text)
    except pa.ArrowInvalid as exc:
        _fail(given, f"not a regular expression (RE2): {exc}")


class _Parser:
    """A recursive descent parser; each method parses one rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0

    def parse(self) -> Condition:
        found = self._disjunction()
        if self._token.kind != "end":
            self._fail_expected("and, or, or the end")
        return found

    def _disjunction(self) -> Condition:
        return self._joined("or", self._conjunction, np.logical_or)

    def _conjunction(self) -> Condition:
        return self._joined("and", self._operand, np.logical_and)

    def _joined(self, word: str, part: Callable[[], Condition], join: np.ufunc) -> Condition:
        parts = [part()]
        while self._accept(word):
            parts.append(part())
        return lambda columns, count: join.reduce([test(columns, count) for test in parts])

    def _operand(self) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            _fail(self._token, f"more than {_DEEPEST} levels of not and parentheses")
        found = self._primary()
        self._depth -= 1
        return found

    def _primary(self) -> Condition:
        if self._accept("not"):
            test = self._operand()
            return lambda columns, count: ~test(columns, count)
        if self._accept("("):
            found = self._disjunction()
            if not self._accept(")"):
                self._fail_expected(") or and, or")
            return found
        return self._comparison()

    def _comparison(self) -> Condition:
        if self._token.kind != "word" or self._token.text.lower() in _JOINING:
            self._fail_expected("the name of a column, not, or (")
        name = self._take()
        if self._token.text not in _OPERATORS or self._token.kind != "operator":
            self._fail_expected(f"one of {' '.join(_OPERATORS)}")
        operator = self._take()
        if self._token.kind not in ("word", "quoted"):
            self._fail_expected("a value; one with spaces or operators needs quotes")
        return partial(_compare, name, operator, self._take())

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        self._next += 1
        return token

    def _accept(self, text: str) -> bool:
        accepted = self._token.kind != "quoted" and self._token.text.lower() == text
        self._next += accepted
        return accepted

    def _fail_expected(self, what: str) -> NoReturn:
        token = self._token
        got = "the end" if token.kind == "end" else repr(token.text)
        _fail(token, f"expected {what} (got {got})")


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        found, at = match[kind], match.start(kind)
        if kind == "other":
            what = "a quote that does not end" if found in "\"'" else f"unexpected {found!r}"
            _fail(_Token(kind, found, at, text), what)
        if kind == "quoted":
            found = re.sub(r"\\([\"'\\])", r"\1", found[1:-1])
        yield _Token(kind, found, at, text)
        if kind == "end":
            return


def _fail(token: _Token, message: str) -> NoReturn:
    # The same whitespace as before the token, so that the caret is below its first character.
    blanks = re.sub(r"\S", " ", token.condition[: token.at])
    raise UsageError(f"where: {message}\n  {token.condition}\n  {blanks}^")
