"""The gate for names that come from a record, a manifest, a label or a uri.

    inside("to", "train/cat/rex.jpg")  ─▶  to/train/cat/rex.jpg
    inside("to", "../../x")            ─▶  RecordError

A name is accepted if it names a file below the folder on every system, so that a copy of a dataset
may be moved to another one. Exports write only to paths of :func:`inside`; a test reads their code.
"""

from __future__ import annotations

import os
import re

from recordgen.errors import RecordError, UsageError
from recordgen.storage.paths import is_inside, is_local, join, local_path

# Bytes in the name of a file or folder, and in a path: NAME_MAX and PATH_MAX of Linux.
_MAX_NAME, _MAX_PATH = 255, 4096

# Separators of folders, control characters, and halves of characters, which have no UTF-8.
_REFUSED = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:")
# "Naming Files, Paths, and Namespaces", Microsoft: devices, also with a suffix.
_RESERVED = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE | re.DOTALL
)


def name_fault(name: str) -> str:
    """Return why a text is no name of a file or folder on every system; empty if it is one.

    ``..`` → ``it ends with a dot or a blank``; ``rex.jpg`` → an empty text
    """
    size = len(name.encode("utf-8", "surrogatepass"))
    if not 0 < size <= _MAX_NAME:
        return f"it has {size:,} bytes, and a name 1 to {_MAX_NAME}"
    if _REFUSED.search(name):
        return "it has a slash, a backslash or a control character"
    if name[-1] in ". ":
        return "it ends with a dot or a blank"
    if _DRIVE.match(name):
        return "it begins with a drive"
    return "Windows reserves it for a device" if is_reserved(name) else ""


def is_reserved(name: str) -> bool:
    """Return whether Windows takes a name for a device: ``con``, ``NUL.txt``."""
    return _RESERVED.fullmatch(name) is not None


def path_fault(path: str) -> str:
    """Return why a text is no path of a file below a folder; empty if it is one."""
    if len(path) > _MAX_PATH:
        return f"it has {len(path):,} characters, and a path at most {_MAX_PATH:,}"
    return next(filter(None, map(name_fault, path.split("/"))), "")


def inside(folder: str, name: str) -> str:
    """Return the path of a file that is written into a folder or below a URL.

    Raises:
        RecordError: the name would leave the folder, or is none on every system.
        UsageError: a link in the folder leads out of it.
    """
    if fault := path_fault(name):
        raise RecordError(f"{folder}: no file may be named {name!r:.300} there: {fault}")
    if is_local(folder):
        parent = local_path(folder)
        for each in name.split("/")[:-1]:
            parent = os.path.join(parent, each)
            if os.path.islink(parent) and not is_inside(parent, folder):
                raise UsageError(
                    f"{parent}: this link leads out of {folder}, and nothing is written there; "
                    f"remove it, or give another folder"
                )
    return join(folder, name)
