"""A fingerprint of the images that import files name.

TFX's own fingerprint covers only the import files: an image replaced by another of the same name
would be a stale cache hit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from recordgen import storage
from recordgen.conversion.api import store_of
from recordgen.core.conversion import PayloadStore
from recordgen.core.dataset.manifest import read_vocabulary
from recordgen.core.dataset.vocabulary import labels_digest
from recordgen.core.rows.row import Row, RowBatch, requested_uris
from recordgen.errors import NotAllowedError, PayloadError, UnknownSchemeError
from recordgen.formats.detect import detect
from recordgen.formats.import_file import ImportFile
from recordgen.formats.row_reader import RowReader
from recordgen.messages.masking import without_secrets
from recordgen.options import ConvertOptions
from recordgen.registry import FORMATS
from recordgen.storage import FileInfo, RequestContext
from recordgen.storage.access import RowUrlPolicy
from recordgen.tasks import Task, task_for

# Rows whose payloads are looked up together; they are held in memory. The more rows, the more of
# the payloads on each page of a listing are needed.
_ROWS_AT_ONCE = 100_000

_DEFAULTS = ConvertOptions()


def version_or_missing(path: str, context: RequestContext = storage.ANY_REQUEST) -> str:
    """Return the version of the file at ``path``, or the reason why it has none.

    The conversion rejects such a file; once it exists, the fingerprint changes.

    Raises: StorageError: storage failed, so nothing is known about the file.
    """
    try:
        return storage.version(path, context)
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


def _versions(
    rows: Sequence[Row], store: PayloadStore, task: Task
) -> Iterator[list[tuple[str, str]]]:
    """Yield for each row the path and version of its payloads in storage.

    If the conversion would reject a payload, such as a file that rows may not reach, its version is
    the reject's code.
    """
    uris = task.stored_uris([row.uri for row in rows], [row.annotation for row in rows])
    urls = [
        url
        for row, own in zip(rows, uris, strict=True)
        for url in requested_uris(own, row.addresses)
    ]
    sources = [row.source for row, own in zip(rows, uris, strict=True) for _ in own]
    infos = iter(store.infos(urls, sources))
    for row, own in zip(rows, uris, strict=True):
        yield [(storage.resolve(uri, row.source), _version(next(infos))) for uri in own]


def _version(info: FileInfo | PayloadError) -> str:
    return info.code if isinstance(info, PayloadError) else "{}:{}".format(*info)


def image_fingerprint(files: Iterable[ImportFile], options: ConvertOptions = _DEFAULTS) -> str:
    """Return a text that changes with the import files, their images, and the schema.

    ``images:1797,sha256:6b86b273ff34…`` for import files that name 1,797 images. Memory does not
    grow with the number of images.

    Args:
        files: the import files; a missing file has no rows here, and the conversion reports it.
        options: the options of the conversion.

    Raises:
        SourceError: an import file cannot be read.
        UsageError: the format of the files cannot be detected.
        StorageError: storage failed.
    """
    digest = hashlib.sha256()

    def add(path: str, version: str) -> None:
        digest.update(f"{path}\0{version}\0".encode("utf-8", "surrogateescape"))

    if options.schema_file:
        add(options.schema_file, version_or_missing(options.schema_file))
    if options.vocabulary:
        labels = read_vocabulary(options.vocabulary)
        add(without_secrets(options.vocabulary), labels_digest(labels.names if labels else ()))
    present = []
    for file in files:
        # TFX rounds an import file's time to seconds, and would miss a change within a second.
        version = version_or_missing(file.path)
        add(without_secrets(file.path), version)
        if version != "missing":
            present.append(file)

    if not present:
        return f"images:0,sha256:{digest.hexdigest()}"
    detection = detect(present, options)
    options = detection.options
    reader = RowReader(options)
    given, present = {file.path for file in present}, reader.with_lists(detection.files)
    for file in present:
        if file.folder and file.path not in given:
            add(without_secrets(file.path), version_or_missing(file.path))
        if file.named_by is not None:
            policy = RowUrlPolicy(options.access, file.named_by)
            version = version_or_missing(file.path, RequestContext(policy))
            add(without_secrets(file.path), version)
    images = 0
    task, store = task_for(options), store_of(options)
    if not task.names_payloads:  # all data is in the import files
        return f"images:0,sha256:{digest.hexdigest()}"
    # Of a folder, only the documents have a version so far, and not the files of labels.
    is_all_given = FORMATS[options.format].has_columns
    items = reader.read_all(present)
    rows = chain.from_iterable(item.rows for item in items if isinstance(item, RowBatch))
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        for row, versions in zip(some, _versions(some, store, task), strict=True):
            images += len(versions)
            # A row without payloads in storage is added itself.
            for path, version in versions or [(row.uri, row.annotation or "")]:
                add(path, version)
            if not is_all_given:
                add(row.split or "", row.annotation or "")
    return f"images:{images},sha256:{digest.hexdigest()}"
