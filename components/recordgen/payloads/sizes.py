"""Sizes of payloads; in object stores from listings, if they take fewer requests.

    1.jpg 2.jpg 3.jpg … of gs://bucket/images ─▶ GET 1,000 objects of images/, GET the next 1,000, …

A folder is listed if many of its payloads are needed, and as long as its pages contain many of
them; if very many are needed, ranges of names are listed concurrently.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, repeat
from threading import Event
from typing import TypeAlias

from recordgen import storage
from recordgen.core.image_settings import Limits
from recordgen.core.ordered import map_in_order
from recordgen.core.rows.ranges import Range
from recordgen.errors import PayloadError
from recordgen.payloads.requests import (
    any_far,
    ask_all,
    check_reach,
    checked_info_in,
    context_of,
    refused,
    requested,
)
from recordgen.rejects import RejectCode
from recordgen.storage import FileInfo, RequestContext
from recordgen.storage.access import Access

#: Look-ups that a page must save. A page of 1,000 objects takes the processor time of 13 look-ups,
#: costs as much as 12, and is estimated to take as long as 10.
SAVED_BY_PAGE = 20

#: Least needed names in each range of a folder.
RANGE_NAMES = 2_000

# Ranges listed concurrently.
_LISTINGS = 32

# Containers have no limit, but the payloads in them do.
_ANY_MB = 1e12

#: A payload's path, the import file that names it, and its info if already known.
_Named: TypeAlias = "tuple[str, str, FileInfo | None]"
_Info: TypeAlias = "FileInfo | PayloadError"


def worth_listing(wanted: int, pages: int) -> bool:
    """Return whether listing this many pages pays off if they contain ``wanted`` payloads."""
    return wanted >= pages * SAVED_BY_PAGE


def listed_infos(paths: Iterable[str]) -> dict[str, FileInfo]:
    """Return sizes and versions of the payloads for which listings cost less than look-ups.

    All others must be looked up one by one, as well as local and missing payloads.

    Args:
        paths: the payloads, in any order; rows must be allowed to reach them.

    Returns:
        Results of :func:`recordgen.storage.info`, by path.

    Raises: StorageError: storage failed.
    """
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for path in paths:
        wanted[path.rpartition("/")[0]].add(path)
    ranges = (
        files
        for all_files in wanted.values()
        if worth_listing(len(all_files), 1)
        for files in _ranges(sorted(all_files))
    )
    stop = Event()
    found = map_in_order(
        lambda files: _listed(files, RequestContext(stop=stop)),
        ranges,
        threads=_LISTINGS,
        on_leave=stop.set,
    )
    return {path: info for infos in found for path, info in infos.items()}


def _ranges(files: list[str]) -> list[list[str]]:
    """Cut paths into runs of nearly equal lengths, of ``RANGE_NAMES`` or a little more."""
    count = max(1, len(files) // RANGE_NAMES)
    edges = [len(files) * number // count for number in range(count + 1)]
    return [files[start:end] for start, end in pairwise(edges)]


def _listed(files: list[str], context: RequestContext) -> dict[str, FileInfo]:
    """Return the infos of sorted files in one folder from listings, as long as they pay off."""
    folder, _, first = files[0].rpartition("/")
    last = files[-1].rpartition("/")[2]
    wanted = frozenset(files)
    found: dict[str, FileInfo] = {}
    pages = storage.list_infos(folder, context, first=first, last=last)
    for number, page in enumerate(pages, 1):
        found.update((path, page[path]) for path in wanted.intersection(page))
        if len(found) == len(wanted) or not worth_listing(len(found), number):
            break
    return found


def payload_infos(
    uris: Sequence[str], sources: Sequence[str], limit: Limits, access: Access
) -> Iterable[FileInfo | PayloadError]:
    """Return as :meth:`recordgen.core.conversion.PayloadStore.infos` does."""
    paths = list(map(storage.resolve, uris, sources))
    named = list(zip(paths, sources, strict=True))
    parts = list(map(Range.of, paths))
    if any(parts):
        return _part_infos(named, parts, limit, access)
    return _file_infos(named, limit, access)


def _part_infos(
    named: Sequence[tuple[str, str]], parts: Sequence[Range | None], limit: Limits, access: Access
) -> Iterator[_Info]:
    """Yield the infos of payloads, some in containers, each of which is looked up once."""
    whole = [item for item, part in zip(named, parts, strict=True) if part is None]
    places = [part and (part.file, source) for part, (_, source) in zip(parts, named, strict=True)]
    inside = list(dict.fromkeys(filter(None, places)))
    found = iter(_file_infos(whole, limit, access))
    containers = _file_infos(inside, replace(limit, mb=_ANY_MB), access)
    known = dict(zip(inside, containers, strict=True))
    for part, place in zip(parts, places, strict=True):
        info = next(found) if place is None else known[place]
        if part is not None and not isinstance(info, PayloadError):
            info = checked_info_in(part, info, limit)
        yield info


def _file_infos(named: Sequence[tuple[str, str]], limit: Limits, access: Access) -> Iterable[_Info]:
    paths, sources = [path for path, _ in named], [source for _, source in named]
    known: Iterator[FileInfo | None]
    if is_far := any_far(paths):
        reached = [path for path, source in named if access.refusal(path, source) is None]
        listed = listed_infos(path for path in reached if not storage.is_local(path))
        known = map(listed.get, paths)
    elif any_far(set(sources)):  # rows of remote import files never reach local files
        known = repeat(None, len(paths))
    else:
        known = storage.local_infos(paths)
        if access.prefixes or access.confined:
            reach = map(access.refusal, paths, sources)
            known = (None if no else info for info, no in zip(known, reach, strict=True))
    ask = partial(_payload_info, limit=limit, access=access)
    asked = zip(paths, sources, known, strict=True)
    return ask_all(ask, asked, is_far=True) if is_far else _local_infos(ask, asked, limit)


def _local_infos(
    ask: Callable[[_Named, Event], _Info], asked: Iterable[_Named], limit: Limits
) -> Iterator[_Info]:
    """Yield known infos within the size limit; look up the other local payloads."""
    stop, sizes = Event(), range(1, limit.bytes + 1)
    for named in asked:
        info = named[2]
        yield info if info is not None and info.size in sizes else ask(named, stop)


def _payload_info(named: _Named, stop: Event, *, limit: Limits, access: Access) -> _Info:
    path, source, info = named
    try:
        if info is None:
            check_reach(path, source, access)
            most = limit.bytes
            info = requested(
                lambda: storage.info(path, context_of(access, source, stop, most)), path, limit
            )
        if info.size == 0:
            return refused(RejectCode.EMPTY_FILE, "the file is empty (0 bytes)")
        limit.check_size(info.size)
    except PayloadError as exc:
        return exc
    return info
