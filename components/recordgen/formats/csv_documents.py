"""CSV documents of formats of images: records, and a problem for each line that is none.

A broken line costs itself, and the image that it is about if one of its fields names one: an image
never loses a box in silence.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from recordgen.errors import SourceError
from recordgen.formats.csv_records import Record, read_blocks
from recordgen.formats.lines import bounded_lines
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import Problem
from recordgen.rejects import Reject, RejectCode


def records_of(listing: Listing, document: str) -> Iterator[Record | Problem]:
    """Yield the records of a CSV, and a problem for each line that is none.

    Raises: SourceError: the file as a whole is no CSV; StorageError.
    """
    where, image_in = f"{listing.root}{document}", partial(_image_in, listing, document)
    with listing.open(document) as file:
        for item in read_blocks(bounded_lines(file, where), where, uri_in=image_in):
            if isinstance(item, Reject):
                yield Problem(item.line, item.message, item.uri, RejectCode(item.code))
            else:
                yield from item.each()


def rows_of(listing: Listing, document: str) -> Iterator[Record | Problem]:
    """Yield records with as many fields as the first one, the header, and else a problem.

    Raises: as :func:`records_of`.
    """
    width = 0
    for item in records_of(listing, document):
        width = width or (len(item.fields) if isinstance(item, Record) else 0)
        if isinstance(item, Record) and len(item.fields) != width:
            message = f"expected {width} fields, as the header has (got {len(item.fields)})"
            uri = _image_in(listing, document, item.fields)
            yield Problem(item.line, message, uri, RejectCode.TOO_MANY_FIELDS)
        else:
            yield item


def columns_of(
    listing: Listing, document: str, *needed: str, named: Callable[[str], str] = str
) -> Iterator[tuple[int, Mapping[str, str]] | Problem]:
    """Yield the line and the fields of each record below the header, by the names in it.

    Blanks, and the # of a comment, do not belong to a name, which ``named`` may change.

    Raises: as :func:`records_of`; SourceError: the header has not the needed names.
    """
    header: Sequence[str] = ()
    for item in rows_of(listing, document):
        if isinstance(item, Problem):
            yield item
        elif header:
            yield item.line, dict(zip(header, item.fields, strict=True))
        else:
            header = [named(field.strip().lstrip("#")) for field in item.fields]
            if not {*needed} <= {*header}:
                raise SourceError(
                    f"{listing.root}{document}:{item.line}: the header must name "
                    f"{', '.join(needed)} (got {', '.join(header):.200})"
                )


def _image_in(listing: Listing, document: str, fields: Sequence[str]) -> str:
    """Return the image that a field names, as other lines may be about the same one; or ""."""
    folder = posixpath.dirname(document)
    names = [f"{field}{suffix}" for field in fields if field.strip() for suffix in ("", ".jpg")]
    found = (listing.image_at(name, folder) for name in names)
    return next((image for image in found if isinstance(image, str)), "")
