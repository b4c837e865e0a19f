r"""Safe text for a terminal: escapes characters that control it or falsify the shown text.

A label ``cat\x1b[2J`` would clear the screen, ``\u202e`` reverses the text after it. The dataset
keeps both; a terminal shows ``\u001b[2J`` and the six letters ``\u202e``.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone

from recordgen.errors import StorageError
from recordgen.messages import INVISIBLE
from recordgen.messages.masking import masked, masked_values

# Control characters except line breaks, and lone surrogates.
_UNSAFE = re.compile(f"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff{INVISIBLE}]")


def escaped(text: str) -> str:
    r"""Return a text that a terminal shows unchanged; line breaks stay.

    The escapes are JSON escapes (``\u001b``), so JSON keeps its meaning.
    """
    return _UNSAFE.sub(_escape, text)


def one_line(text: str) -> str:
    r"""Return a text as :func:`escaped`, with ``\n`` for line breaks."""
    return escaped(text).replace("\n", "\\n")


def show(text: str) -> None:
    """Print a text without control characters and without secrets of URLs."""
    put(escaped(masked_values(text)))


def put(text: str, end: str = "\n") -> None:
    """Print a safe text. Raises: as :func:`output`."""
    with output():
        print(text, end=end)  # noqa: T201 -- this is where commands print


@contextmanager
def output() -> Iterator[None]:
    """Flush what is written, so that a fault of the output is known before the command ends.

    Raises:
        StorageError: the output takes no more, such as a full disk.
        BrokenPipeError: the reader of the output is gone.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as exc:
        drop_output()
        raise StorageError(f"cannot write to the standard output: {exc.strerror or exc}") from exc


def drop_output() -> None:
    """Redirect the standard output to nothing: the final flush would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 1 << 16 else json.dumps(found[0])[1:-1]


def aligned(
    header: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)
) -> list[str]:
    """Return the lines of a table; columns in ``left`` are left-aligned, the others right."""
    cells = [tuple(map(one_line, row)) for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


class TextFormatter(logging.Formatter):
    """``recordgen: message``; records of libraries have their level and name instead."""

    def __init__(self) -> None:
        super().__init__("recordgen: %(message)s")
        self._foreign = logging.Formatter("%(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text."""
        ours = record.name.partition(".")[0] == "recordgen"
        text = super().format(record) if ours else self._foreign.format(record)
        return escaped(masked(text))


class JsonFormatter(logging.Formatter):
    """One JSON object per record, on one line, in ASCII.

    Records of libraries have the event ``warning``, or ``log`` below that level.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON."""
        moment = datetime.fromtimestamp(record.created, timezone.utc)
        foreign = "warning" if record.levelno >= logging.WARNING else "log"
        line = {
            "time": f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z",
            "level": record.levelname.lower(),
            "event": getattr(record, "event", foreign),
            "message": masked(record.getMessage()),
            "logger": record.name,
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = masked(self.formatException(record.exc_info))
        return json.dumps(line, default=str)
