r"""Images that a DataFrame itself holds, each of which becomes a part of one temporary file.

    image                          label
    b"\xff\xd8…"                    cat     →  DataFrame/0.jpg, at byte 0 of the file
    {"bytes": …, "path": "b.png"}  dog     →  DataFrame/1/b.png, at byte 20480
    uint8 [height, width, 3]       dog     →  DataFrame/2.png, at byte 40960

Detection and rows see paths instead of images. Only images of rows are written, and the file is
removed when the source of the run is.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from recordgen.core.rows.row import Range, ReadItem, RowBatch, name_within
from recordgen.core.task.task import Task
from recordgen.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

_SUFFIXES = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png", b"GIF8": ".gif", b"RIFF": ".webp"}

# Seconds that every file system stores.
_SECONDS = 1 << 31


class FrameImages:
    """The images of a frame, by the path that a row has for each."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._cells: dict[str, Any] = {}
        self._places: dict[str, Range] = {}
        self._file: Any = None
        self._digest = hashlib.sha256()

    def with_paths(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a frame with paths in place of images."""
        import pandas as pd

        columns = []
        for at in range(frame.shape[1]):
            column = frame.iloc[:, at]
            there = column.dropna()
            if len(there) and _is_image(there.iloc[0]):
                cells = zip(column.to_numpy(dtype=object), column.notna(), strict=True)
                path_of = partial(self._path, column=str(column.name))
                paths = [path_of(it, at) if known else None for at, (it, known) in enumerate(cells)]
                column = pd.Series(paths, index=frame.index, name=column.name, dtype=object)
            columns.append(column)
        return pd.concat(columns, axis=1) if columns and self._cells else frame

    def add(self, data: bytes, name: str) -> str:
        """Write an image at once; return its path, which ends with ``name``."""
        path = self._path({"bytes": data, "path": name}, len(self._cells), "")
        self._place(path)
        self._cells[path] = {}  # its place is known
        return str(path)

    def _path(self, cell: Any, line: int, column: str) -> Any:
        """Return the path for a cell; its own if it names a file."""
        data, name = _content(cell)
        if data is None:
            return name or (None if isinstance(cell, Mapping) else cell)
        suffix = suffix_of(data)
        path = name_within(self._name, line, name or "")
        if path == f"{self._name}/{line}":
            path += suffix
        if path in self._cells:  # another column of the same row
            path = f"{self._name}/{column}/{line}{suffix}"
        self._cells[path] = cell
        return path

    def check(self, task: type[Task]) -> None:
        """Check that the rows of a task can name the images. Raises: UsageError."""
        if self._cells and not task.names_payloads:
            path, cell = next(iter(self._cells.items()))
            what = f"the DataFrame holds images ({type(cell).__name__}, {path})"
            remedy = "leave out their column, declare it with schema=…, or use recordgen.write"
            raise UsageError(f"{what}, and rows of {task.name} hold no files; {remedy}")

    def in_file(self, items: Iterable[ReadItem], task: Task) -> Iterator[ReadItem]:
        """Yield the items of a frame; batches have the places of their images in the file."""
        for item in items:
            if isinstance(item, RowBatch) and self._cells and task.names_payloads:
                item = with_places(item, task, self._address)
            yield item
        self._finish()

    def _address(self, uri: str) -> str | None:
        return self._place(uri).address if uri in self._cells else None

    def _place(self, path: str) -> Range:
        """Return where an image is; it is written when the first row needs it."""
        if path not in self._places:
            if self._file is None:
                self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115 closed by _finish
                    prefix="recordgen-", suffix=".images", delete=False
                )
                weakref.finalize(self, _remove, self._file.name)
            data = _content(self._cells[path])[0] or b""
            start = self._file.tell()
            self._file.write(data)
            self._file.flush()  # boxes in pixels need the size of the image
            self._digest.update(data)
            self._places[path] = Range(self._file.name, start, len(data))
        return self._places[path]

    def _finish(self) -> None:
        """Close the file, whose time is a digest of it: --resume knows the same images again."""
        if self._file is None or self._file.closed:
            return
        self._file.close()
        number = int.from_bytes(self._digest.digest()[:8], "big") % (_SECONDS * 10**9)
        os.utime(self._file.name, ns=(number, number))


def with_places(batch: RowBatch, task: Task, address_of: Callable[[str], str | None]) -> RowBatch:
    """Return rows with the addresses of their images; None is that of a file of its own."""
    known, found = batch.addresses or [None] * len(batch.uris), list[str | None]()
    for uris, own in zip(task.stored_uris(batch.uris, batch.annotations), known, strict=True):
        places = [*map(address_of, uris)]
        if any(places):
            paths = json.loads(own) if own else [None] * len(uris)
            own = json.dumps([place or path for place, path in zip(places, paths, strict=True)])
        found.append(own)
    return batch._replace(addresses=found)


def suffix_of(data: bytes) -> str:
    """Return the suffix of an image file with these bytes; "" if they are none."""
    return next((end for head, end in _SUFFIXES.items() if data.startswith(head)), "")


def _remove(path: str) -> None:
    with suppress(OSError):
        os.remove(path)


def _is_image(cell: Any) -> bool:
    """Return whether a cell holds an image; a text as bytes is none."""
    if isinstance(cell, Mapping):
        return bool({"bytes", "path"} & cell.keys())
    are_bytes = isinstance(cell, bytes | bytearray | memoryview)
    return _is_pillow(cell) or _is_pixels(cell) or (are_bytes and not _is_text(bytes(cell)))


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _is_pillow(cell: Any) -> bool:
    pillow = sys.modules.get("PIL.Image")  # imported if there is such an image
    return pillow is not None and isinstance(cell, pillow.Image)


def _is_pixels(cell: Any) -> bool:
    """Return whether a cell is an array of NumPy or a tensor: gray, RGB or RGBA, channels last."""
    shape: Sequence[int] = getattr(cell, "shape", ())
    is_image = len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3, 4))
    return is_image and 0 not in shape and "uint8" in str(getattr(cell, "dtype", ""))


def _content(cell: Any) -> tuple[bytes | None, str]:
    """Return the bytes of a cell's image, and its path; None for a cell that only names a file."""
    if isinstance(cell, Mapping):
        data, name = cell.get("bytes"), cell.get("path")
        return (None if data is None else bytes(data)), (name if isinstance(name, str) else "")
    if isinstance(cell, bytes | bytearray | memoryview):
        return bytes(cell), ""
    if _is_pixels(cell):
        import numpy as np
        from PIL import Image

        pixels = np.asarray(cell)
        cell = Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)
    if _is_pillow(cell):
        out = io.BytesIO()
        cell.save(out, "PNG")
        return out.getvalue(), ""
    return None, ""
