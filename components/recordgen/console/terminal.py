r"""Safe text for a terminal: escapes characters that control it or falsify the shown text.

A label ``cat\x1b[2J`` would clear the screen, ``\u202e`` reverses the text after it. The dataset
keeps both; a terminal shows ``\u001b[2J`` and the six letters ``\u202e``.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from recordgen.errors import StorageError
from recordgen.masking import masked_values
from recordgen.quoting import INVISIBLE

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
