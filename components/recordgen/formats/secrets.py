"""Rows without the secrets of their URLs, which are kept in a column that only requests read.

    https://host/1.jpg?X-Goog-Signature=8f…,cat
    →  Row(uri="https://host/1.jpg", annotation="cat",
           addresses='["https://host/1.jpg?X-Goog-Signature=8f…"]')

So nothing that is made from rows contains a secret, a row keeps its place and its split when its
URL is signed again, and ``--append`` and ``--resume`` recognise it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, repeat

from recordgen import storage
from recordgen.core.rows.row import ReadItem, Row, RowBatch
from recordgen.core.task.task import Task
from recordgen.messages.masking import masked, may_hold_secrets, without_secrets
from recordgen.rejects import Counted, Finding, OddLine, Reject

# What is in each URL, in JSON as well.
_URL_MARKS = (":/", ":\\", "//", "\\\\", "%")


def without_url_secrets(items: Iterable[ReadItem], task: Task) -> Iterator[ReadItem]:
    """Yield a reader's items with secrets removed from sources, uris and messages."""
    for item in items:
        if isinstance(item, RowBatch):
            yield _public_batch(item, task)
        else:
            yield item if isinstance(item, Counted) else _public_note(item)


def _public_row(row: Row, task: Task) -> Row:
    [stored] = task.stored_uris([row.uri], [row.annotation])
    if not any(map(may_hold_secrets, (row.source, row.uri, *stored))):
        return row
    source = without_secrets(row.source)
    uris = stored or ([row.uri] if row.uri else ())
    public = {uri: without_secrets(uri, is_url=storage.is_http(source)) for uri in uris}
    is_same = all(uri == name for uri, name in public.items())
    if is_same and source == row.source:
        return row
    requested: list[str | None] = []
    inside = chain(json.loads(row.addresses or "[]"), repeat(None))
    for uri, place in zip(uris, inside, strict=False):
        if place and source == row.source:
            requested.append(place)
        else:
            full, read = (
                storage.resolve(place or uri, row.source),
                storage.resolve(public[uri], source),
            )
            requested.append(full if full != read else None)
    return row._replace(
        source=source,
        uri=public.get(row.uri, row.uri),
        annotation=row.annotation if is_same else task.with_uris(row.annotation, public),
        addresses=json.dumps(requested) if any(requested) else None,
    )


def _public_batch(batch: RowBatch, task: Task) -> RowBatch:
    names = [*batch.uris, batch.source]
    if task.names_payloads and (storage.is_http(batch.source) or _may_name_urls(batch)):
        names += chain.from_iterable(task.stored_uris(batch.uris, batch.annotations))
    if not may_hold_secrets("\n".join(names)):
        return batch
    return RowBatch.of([_public_row(row, task) for row in batch.rows])


def _may_name_urls(batch: RowBatch) -> bool:
    """Return whether annotations may name other files by URLs: only their names hold secrets."""
    text = "\n".join(filter(None, batch.annotations))
    return any(mark in text for mark in _URL_MARKS)


def _public_note(item: Reject | Finding | OddLine) -> Reject | Finding | OddLine:
    source = without_secrets(item.source)
    uri = without_secrets(item.uri, is_url=storage.is_http(source))
    message = item.message
    for full, public in ((item.uri, uri), (item.source, source)):
        if full != public:  # its secrets may have characters that end a URL in a text
            message = message.replace(full, public)
    return item._replace(source=source, uri=uri, message=masked(message))
