"""XML in time and memory that grow with the document only.

Entities could make a small document large, so a DOCTYPE is refused. Namespaces are not expanded:
each element would have a copy of an address of any length. Expat reads a token anew with each piece
of it, so pieces double while a token goes on.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from recordgen.core.limits import XML_TOKEN

_CHUNK = 1 << 16


def parse(data: bytes) -> Element:
    """Return the root of a document. Raises: ValueError: it is no XML, or has a DOCTYPE."""
    [root] = elements(io.BytesIO(data), None)
    return root


def elements(file: IO[bytes], tag: str | None) -> Iterator[Element]:
    """Yield each element of a tag once it is whole; without a tag, the root.

    Raises: ValueError: it is no XML, or has a DOCTYPE.
    """
    builder, whole = TreeBuilder(), list[Element]()

    def end(name: str) -> None:
        element = builder.end(name)
        if name == tag:
            whole.append(element)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end if tag is None else end
    parser.CharacterDataHandler = builder.data
    size = _CHUNK
    try:
        while data := file.read(size):
            before = parser.CurrentByteIndex
            parser.Parse(data)
            yield from whole
            whole.clear()
            size = 2 * size if parser.CurrentByteIndex == before else _CHUNK
            XML_TOKEN.check(size)
        parser.Parse(b"", True)
    except expat.ExpatError as exc:
        raise ValueError(str(exc)) from exc
    if tag is None:
        yield builder.close()


def _refuse(*_: object) -> NoReturn:
    raise ValueError("it declares a DOCTYPE or entities, which no such document needs")
