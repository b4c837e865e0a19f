"""Sizes of many payloads in object stores, from listings where these take fewer requests.

    1.jpg 2.jpg 3.jpg … of gs://bucket/images ─▶ GET 1,000 objects of images/, GET the next 1,000, …

A folder is listed if many of its payloads are wanted, and as long as its pages hold many of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from threading import Event

from recordgen import storage
from recordgen.ordered import map_in_order
from recordgen.storage import FileInfo, RequestContext

#: How many look-ups a page must spare. An estimate: a page of 1,000 objects takes about ten times
#: as long as a look-up and costs more, and dozens of look-ups are under way at once.
SPARED_BY_PAGE = 100

# Folders that are listed at once.
_LISTINGS = 16


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
    many = [files for files in wanted.values() if worth_listing(len(files), 1)]
    stop = Event()
    found = map_in_order(
        lambda files: _listed(files, RequestContext(stop=stop)),
        many,
        threads=_LISTINGS,
        on_leave=stop.set,
    )
    return {path: info for infos in found for path, info in infos.items()}


def _listed(files: set[str], context: RequestContext) -> dict[str, FileInfo]:
    """Return what the listing of their folder says of some files, as long as that is worth it."""
    folder = next(iter(files)).rpartition("/")[0]
    found: dict[str, FileInfo] = {}
    for pages, page in enumerate(storage.list_infos(folder, context), 1):
        found.update((path, page[path]) for path in files.intersection(page))
        if len(found) == len(files) or not worth_listing(len(found), pages):
            break
    return found
