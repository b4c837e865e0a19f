"""XML without DOCTYPE, whose entities could make a small document large."""

from __future__ import annotations

from contextlib import suppress
from typing import IO, NoReturn
from xml.parsers import expat

_CHUNK = 1 << 16


def check_no_doctype(file: IO[bytes]) -> None:
    """Check that the root element of an XML document comes first, in any encoding.

    Raises: ValueError: the document has a DOCTYPE.
    """
    parser, begun = expat.ParserCreate(), []
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = lambda *_: begun.append(True)
    with suppress(expat.ExpatError):  # the reader reports it
        while not begun and (data := file.read(_CHUNK)):
            parser.Parse(data)


def _refuse(*_: object) -> NoReturn:
    raise ValueError("it declares a DOCTYPE or entities, which no such document needs")
