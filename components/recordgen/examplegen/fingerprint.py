"""A fingerprint over the images that import files name.

TFX's own fingerprint covers the import files only: an image that is replaced under its old name
would be a stale cache hit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from recordgen import storage
from recordgen.access import Access, RowGate
from recordgen.errors import NotAllowedError, UnknownSchemeError
from recordgen.options import ConvertOptions
from recordgen.rows import Row
from recordgen.sources import ImportFile, RowReader, with_lists
from recordgen.sources.deciding import decide
from recordgen.storage import Terms
from recordgen.tasks import TASKS, Task, task_for

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


def _payload_version(row: Row, access: Access, task: Task | None) -> str:
    """Return the version of a row's payload, which is not looked at if the row may not reach it.

    One that stands in the row changes when the row does, also where the row lies in another file.
    """
    if task is not None and not task.is_stored(row.uri):
        return row.annotation or ""
    path = storage.resolve(row.uri, row.source)
    if access.refusal(path, row.source) is not None:
        return "not allowed"
    return version_or_missing(path, Terms(RowGate(access, row.source)))


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
    rows: Iterator[Row] = iter(())
    task = None
    is_named = options.task not in TASKS or TASKS[options.task].names_payloads
    if present and is_named:
        options = decide(present, options).options
        task = task_for(options)
        present = with_lists(present, options)
        for file in present:
            if file.named_by is not None:
                gate = RowGate(options.access, file.named_by)
                add(file.path, version_or_missing(file.path, Terms(gate)))
        items = RowReader(options).read_all(present)
        rows = (item for item in items if isinstance(item, Row))
    look_up = partial(_payload_version, access=options.access, task=task)
    with ThreadPoolExecutor(_THREADS) as pool:
        while window := list(islice(rows, _WINDOW)):
            for row, version in zip(window, pool.map(look_up, window), strict=True):
                add(storage.resolve(row.uri, row.source), version)
            images += len(window)
    return f"images:{images},sha256:{digest.hexdigest()}"
