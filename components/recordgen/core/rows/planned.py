"""Rows on their way to a shard: placed rows, known rows, planned rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

_AnyRow = TypeVar("_AnyRow", "PlacedRow", "PlannedRow")


class PlacedRow(NamedTuple):
    """A row and its place."""

    sort_key: int  # see Place, also for `split_hash`
    split_hash: int
    source: str  # see Row, also for the following fields
    line: int
    split: str | None
    uri: str
    annotation: str | None
    addresses: str | None = None


class KnownRow(NamedTuple):
    """An example of the existing dataset to which a run appends."""

    sort_key: int  # see Place
    shard: str
    split: str
    source: str  # see Row, also for the following fields
    uri: str
    annotation: str | None


class PlannedRow(NamedTuple):
    """A row that will become an example unless its payload is refused.

    See :class:`recordgen.core.rows.placing.Place` and :class:`recordgen.core.rows.row.Row` for
    other fields.
    """

    sort_key: int
    source: str
    line: int
    uri: str
    annotation: str | None
    bytes: int  # the payload's size
    version: str  # changes when the payload does
    assigned: bool  # its split was assigned, not named
    addresses: str | None = None


class Group(NamedTuple):
    """A group of planned rows with their own shards."""

    split: str
    label: str | None  # the label of all rows, "" for rows without one; None if labels are mixed


def requested_uris(uris: Sequence[str], addresses: str | None) -> Sequence[str]:
    """Return the uris of a row's payloads, or the URLs to request instead."""
    if addresses is None:
        return uris
    return [url or uri for url, uri in zip(json.loads(addresses), uris, strict=False)]


def with_uri(row: _AnyRow, uri: str) -> _AnyRow:
    """Return the row with another uri."""
    return row if row.uri == uri else row._replace(uri=uri)
