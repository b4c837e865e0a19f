"""A fingerprint over the images that import files name.

TFX's own fingerprint covers the import files only: an image that is replaced under its old name
would be a stale cache hit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from recordgen import storage
from recordgen.rows import Row
from recordgen.sources import ImportFile, read_rows

# Looking up a file is waiting, not computing: many at once, whatever the number of cores.
_THREADS = 32
# A window bounds memory and what is lost to waiting at its end.
_WINDOW = 4096


def version_or_missing(path: str) -> str:
    """Return the version of the file at ``path``, or a word for why it has none.

    Such a file is rejected by the conversion later; once it is there, the word changes into a
    version and the fingerprint with it.

    Raises:
        StorageError: storage failed, so nothing is known about the file.
    """
    try:
        return storage.version(path)
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except PermissionError:
        return "forbidden"
    except IsADirectoryError:
        return "folder"


def _payload_paths(files: Iterable[ImportFile]) -> Iterator[str]:
    for file in files:
        for item in read_rows(file):
            if isinstance(item, Row):
                yield storage.resolve(item.uri, item.source)


def image_fingerprint(files: Iterable[ImportFile]) -> str:
    """Return a text that changes when an import file or an image that it names does.

    ``images:1797,sha256:6b86b273ff34…`` for import files that name 1,797 images. Files are read
    and looked up in their own order, which is part of what they say, so memory does not grow
    with their number.

    Args:
        files: the import files; one that is not there counts as having no rows, the conversion
            reports it.

    Raises:
        SourceError: an import file cannot be read.
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
    paths = _payload_paths(present)
    with ThreadPoolExecutor(_THREADS) as pool:
        while window := list(islice(paths, _WINDOW)):
            for path, version in zip(window, pool.map(version_or_missing, window), strict=True):
                add(path, version)
            images += len(window)
    return f"images:{images},sha256:{digest.hexdigest()}"
