"""Where a step reads and writes its artifacts.

KFP's launcher (backend/src/v2/component/launcher_v2.go) copies input artifacts of gs://, minio://
and s3:// to a folder of the container before the step starts, ``gs://bucket/a`` to
``/gcs/bucket/a``, and uploads what lies there for the outputs after it ended well; where nothing
lies, it uploads nothing and goes on. On Vertex AI the same folder is the bucket itself, through
Cloud Storage FUSE. In kfp's local runs an artifact's uri is a path.
"""

from __future__ import annotations

import os

from recordgen import storage
from recordgen.errors import UsageError
from recordgen.kubeflow.execution import Artifact

#: How convert reads and writes: as fits the uri's scheme, at the uri itself, or through the
#: launcher's folder.
TRANSFERS = ("auto", "uri", "path")

_FOLDERS = {"gs": "/gcs/", "minio": "/minio/", "s3": "/s3/"}


def launcher_path(uri: str) -> str:
    """Return the folder or file of the container that stands for ``uri``; others are their own.

    ``minio://bucket/a`` → ``/minio/bucket/a``
    """
    scheme, separator, rest = uri.partition("://")
    return _FOLDERS[scheme] + rest if separator and scheme in _FOLDERS else uri


def place_of(artifact: Artifact, transfer: str) -> str:
    """Return the path or URL at which convert reads or writes ``artifact``.

    ``auto`` goes to ``gs://`` itself: a dataset may be larger than the container's disk, its shards
    come to stay one by one, so that a retried step finds them, and Cloud Storage FUSE has no
    renaming that holds. Of other schemes only the launcher may have the credentials.

    Raises:
        UsageError: ``transfer`` is unknown.
    """
    if transfer not in TRANSFERS:
        raise UsageError(f"transfer must be one of {', '.join(TRANSFERS)} (got {transfer!r})")
    is_direct = transfer == "uri" or (transfer == "auto" and artifact.uri.startswith("gs://"))
    return artifact.uri if is_direct else launcher_path(artifact.uri)


def read_place(artifact: Artifact) -> str:
    """Return where a step that only reads finds ``artifact``: in the launcher's folder, if there.

    It was copied there for the step, or is read through it, and TensorFlow reads every path.
    """
    path = launcher_path(artifact.uri)
    return path if os.path.exists(path) else artifact.uri


def write_place(artifact: Artifact) -> str:
    """Return where a step writes an artifact of moderate size: in the launcher's folder.

    Its parent is made.
    """
    path = launcher_path(artifact.uri)
    if storage.is_local(path):
        os.makedirs(os.path.dirname(storage.local_path(path)) or ".", exist_ok=True)
    return path
