"""Sizes of payloads in object stores from listings, if they take fewer requests.

    1.jpg 2.jpg 3.jpg … of gs://bucket/images ─▶ GET 1,000 objects of images/, GET the next 1,000, …

A folder is listed if many of its payloads are needed, and as long as its pages contain many of
them; if very many are needed, ranges of names are listed concurrently.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from threading import Event

from recordgen import storage
from recordgen.core.ordered import map_in_order
from recordgen.storage import FileInfo, RequestContext

#: Look-ups that a page must save. A page of 1,000 objects takes the processor time of 13 look-ups,
#: costs as much as 12, and is estimated to take as long as 10.
SAVED_BY_PAGE = 20

#: Least needed names in each range of a folder.
RANGE_NAMES = 2_000

# Ranges listed concurrently.
_LISTINGS = 32


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
