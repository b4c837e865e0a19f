"""Rows on their way to a shard: placed in a bucket, known from before, planned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

_AnyRow = TypeVar("_AnyRow", "PlacedRow", "PlannedRow")


class PlacedRow(NamedTuple):
    """A row and its place.

    Attributes:
        sort_key: see :class:`recordgen.rows.placing.Place`.
        split_hash: see :class:`recordgen.rows.placing.Place`.
        source: see :class:`recordgen.rows.row.Row`, as all that follow.
    """

    sort_key: int
    split_hash: int
    source: str
    line: int
    split: str | None
    uri: str
    annotation: str | None
    addresses: str | None = None


class KnownRow(NamedTuple):
    """An example of the dataset that is appended to.

    Attributes:
        sort_key: see :class:`recordgen.rows.placing.Place`.
        shard: the file that holds it.
        split: its split.
        uri: its payload's address as its row gave it.
        annotation: what it says of the payload; see :class:`recordgen.rows.row.Row`.
    """

    sort_key: int
    shard: str
    split: str
    uri: str
    annotation: str | None


class PlannedRow(NamedTuple):
    """A row that will become an example unless its payload is refused.

    Attributes:
        sort_key: its position among all rows (64 bit).
        source: the import file that names it.
        line: 1-based line in that file.
        uri: the payload's address as given.
        annotation: see :class:`recordgen.rows.row.Row`.
        bytes: the payload's size.
        version: changes when the payload does.
        assigned: its split was assigned, not named.
        addresses: see :class:`recordgen.rows.row.Row`.
    """

    sort_key: int
    source: str
    line: int
    uri: str
    annotation: str | None
    bytes: int
    version: str
    assigned: bool
    addresses: str | None = None


class Group(NamedTuple):
    """The planned rows that share shards.

    Attributes:
        split: their split.
        label: the one label of them all, "" if they have none; None: their labels are mixed.
    """

    split: str
    label: str | None


def requested_uris(uris: Sequence[str], addresses: str | None) -> Sequence[str]:
    """Return the uris of a row's payloads, or the URLs to request in their place."""
    if addresses is None:
        return uris
    return [url or uri for url, uri in zip(json.loads(addresses), uris, strict=False)]


def with_uri(row: _AnyRow, uri: str) -> _AnyRow:
    """Return the row with another uri."""
    return row if row.uri == uri else row._replace(uri=uri)
