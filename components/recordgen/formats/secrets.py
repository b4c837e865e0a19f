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

from recordgen import storage
from recordgen.core.rows.row import ReadItem, Row, RowBatch
from recordgen.core.task.task import Task
from recordgen.messages.masking import masked, may_hold_secrets, without_secrets
from recordgen.rejects import Counted, Finding, OddLine, Reject


def without_url_secrets(items: Iterable[ReadItem], task: Task) -> Iterator[ReadItem]:
    """Yield a reader's items with secrets removed from sources, uris and messages."""
    for item in items:
        if isinstance(item, RowBatch):
            yield _public_batch(item, task)
        else:
            yield item if isinstance(item, Counted) else _public_note(item)


def _public_row(row: Row, task: Task) -> Row:
    is_elsewhere = task.names_payloads and not row.uri  # then the annotation has the addresses
    texts = row.uri, row.source, (row.annotation or "") if is_elsewhere else ""
    if not any(map(may_hold_secrets, texts)):
        return row
    source = without_secrets(row.source)
    if row.addresses is not None:  # the payload is in a container
        full = [storage.resolve(path, row.source) for path in json.loads(row.addresses)]
        return row._replace(source=source, addresses=json.dumps(full))
    [uris] = task.stored_uris([row.uri], [row.annotation])
    uris = uris or ([row.uri] if row.uri and task.names_payloads and task.by_address else ())
    public = {uri: without_secrets(uri, is_url=storage.is_http(source)) for uri in uris}
    requested = [
        address
        if (address := storage.resolve(uri, row.source)) != storage.resolve(public[uri], source)
        else None
        for uri in uris
    ]
    if not any(requested):
        return row if source == row.source else row._replace(source=source)
    return row._replace(
        source=source,
        uri=public.get(row.uri, row.uri),
        annotation=task.with_uris(row.annotation, public),
        addresses=json.dumps(requested),
    )


def _public_batch(batch: RowBatch, task: Task) -> RowBatch:
    texts = [*batch.uris, batch.source]
    if task.names_payloads and not any(batch.uris):
        texts += [text or "" for text in batch.annotations]
    if not may_hold_secrets("\n".join(texts)):
        return batch
    return RowBatch.of([_public_row(row, task) for row in batch.rows])


def _public_note(item: Reject | Finding | OddLine) -> Reject | Finding | OddLine:
    source = without_secrets(item.source)
    uri = without_secrets(item.uri, is_url=storage.is_http(source))
    message = item.message
    for full, public in ((item.uri, uri), (item.source, source)):
        if full != public:  # its secrets may have characters that end a URL in a text
            message = message.replace(full, public)
    return item._replace(source=source, uri=uri, message=masked(message))
