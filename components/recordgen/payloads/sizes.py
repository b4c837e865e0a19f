"""Sizes of many payloads in object stores, from listings where these take fewer requests.

    1.jpg 2.jpg 3.jpg … of gs://bucket/images ─▶ GET 1,000 objects of images/, GET the next 1,000, …

A folder is listed if many of its payloads are wanted, and as long as its pages hold many of them;
if very many are wanted, in ranges of names, side by side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from threading import Event

from recordgen import storage
from recordgen.ordered import map_in_order
from recordgen.storage import FileInfo, RequestContext

#: How many look-ups a page must spare. A page of 1,000 objects takes the processor time of 13
#: look-ups, its price is that of 12, and its answer is estimated to take as long as 10.
SPARED_BY_PAGE = 20

#: Names that are wanted of each range of a folder.
RANGE_NAMES = 2_000

# Ranges that are listed at once.
_LISTINGS = 32


def worth_listing(wanted: int, pages: int) -> bool:
    """Say whether listing pages pay off that contain ``wanted`` of the objects."""
    return wanted >= pages * SPARED_BY_PAGE


def listed_infos(paths: Iterable[str]) -> dict[str, FileInfo]:
    """Return sizes and versions of those payloads that a listing gives at lower cost.

    The others, among them all local ones and all that do not exist, must be looked up one by one.

    Args:
        paths: the payloads that are wanted, in any order; rows must be allowed to reach them.

    Returns:
        What :func:`recordgen.storage.info` returns, by path.

    Raises:
        StorageError: storage failed.
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
    """Return what listings say of files in one folder, sorted, as long as that is worth it."""
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
