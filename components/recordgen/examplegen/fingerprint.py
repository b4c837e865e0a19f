"""A fingerprint over the images that import files name.

TFX's own fingerprint covers the import files only: an image that is replaced under its old name
would be a stale cache hit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from recordgen import storage
from recordgen.access import Access, RowGate
from recordgen.errors import NotAllowedError, UnknownSchemeError
from recordgen.options import ConvertOptions
from recordgen.rows import Row
from recordgen.sources import ImportFile, RowReader
from recordgen.sources.deciding import decide
from recordgen.storage import Terms
from recordgen.tasks import task_for

# Looking up a file is waiting, not computing: many at once, whatever the number of cores.
_THREADS = 32
# A window bounds memory and what is lost to waiting at its end.
_WINDOW = 4096

_ON_ANY_TERMS = Terms()
_NOTHING_SAID = ConvertOptions()


def version_or_missing(path: str, terms: Terms = _ON_ANY_TERMS) -> str:
    """Return the version of the file at ``path``, or a word for why it has none.

    Such a file is rejected by the conversion later; once it is there, the word changes into a
    version and the fingerprint with it.

    Raises:
        StorageError: storage failed, so nothing is known about the file.
    """
    try:
        return storage.version(path, terms)
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except PermissionError:
        return "forbidden"
    except IsADirectoryError:
        return "folder"
    except NotAllowedError:
        return "not allowed"
    except UnknownSchemeError:
        return "unknown"


def _payload_version(row: Row, access: Access) -> str:
    """Return the version of a row's payload, which is not looked at if the row may not reach it."""
    path = storage.resolve(row.uri, row.source)
    if access.refusal(path, row.source) is not None:
        return "not allowed"
    return version_or_missing(path, Terms(RowGate(access, row.source)))


def _read_all(files: Sequence[ImportFile], options: ConvertOptions) -> Iterator[Row]:
    """Yield the rows whose payload is a file."""
    if not files:
        return
    decided = decide(files, options).options
    task = task_for(decided)
    for item in RowReader(decided).read_all(files):
        if isinstance(item, Row) and task.is_stored(item.uri):
            yield item


def image_fingerprint(files: Iterable[ImportFile], options: ConvertOptions = _NOTHING_SAID) -> str:
    """Return a text that changes when an import file or an image that it names does.

    ``images:1797,sha256:6b86b273ff34…`` for import files that name 1,797 images. Files are read
    and looked up in their own order, which is part of what they say, so memory does not grow
    with their number.

    Args:
        files: the import files; one that is not there counts as having no rows, the conversion
            reports it.
        options: what rows may reach, and how they are read.

    Raises:
        SourceError: an import file cannot be read.
        UsageError: it is not to be told what they are.
        StorageError: storage failed.
    """
    digest = hashlib.sha256()

    def add(path: str, version: str) -> None:
        digest.update(f"{path}\0{version}\0".encode("utf-8", "surrogateescape"))

    present = []
    for file in files:
        # TFX counts an import file's time in whole seconds; a rewrite within one would be missed.
        version = version_or_missing(file.path)
        add(file.path, version)
        if version != "missing":
            present.append(file)

    images = 0
    rows = _read_all(present, options)
    look_up = partial(_payload_version, access=options.access)
    with ThreadPoolExecutor(_THREADS) as pool:
        while window := list(islice(rows, _WINDOW)):
            for row, version in zip(window, pool.map(look_up, window), strict=True):
                add(storage.resolve(row.uri, row.source), version)
            images += len(window)
    return f"images:{images},sha256:{digest.hexdigest()}"
