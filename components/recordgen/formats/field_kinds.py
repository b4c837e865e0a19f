"""The kind of a single field: the name of a file, a sentence, a number.

a.jpg, gs://bucket/photo       image
a.mp4, lists/train.csv         video, or a list of videos
a.txt, Good and cheap.         text
cat, 4, A Tale                 in doubt
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from itertools import filterfalse, islice
from typing import Any
from urllib.parse import urlsplit

from recordgen import storage

_IMAGES = "jpe?g|png|gif|bmp|ico|webp|tiff?|p[bgp]m"
_VIDEOS = "mp4|m4v|mpe?g4?|mov|avi|mkv|webm|wmv"

#: Suffix of lists of videos.
LIST_SUFFIX = ".csv"
#: Suffixes of payloads, as a part of patterns.
FILE_SUFFIXES = f"{_IMAGES}|{_VIDEOS}|txt"
IMAGE_SUFFIX = re.compile(rf"\.({_IMAGES})$", re.IGNORECASE)
VIDEO_SUFFIX = re.compile(rf"\.({_VIDEOS})$", re.IGNORECASE)
#: Occurs in the names of columns of images.
IMAGE_WORD = re.compile("image|img|photo|picture", re.IGNORECASE)

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)

_DIGITS = re.compile(r"\d+")
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*://|\.{0,2}/)", re.IGNORECASE)
# A URL contains blanks only if its suffix shows that they belong to it.
_URL = re.compile(r"[a-z][a-z0-9+.-]*://(\S+|.+\.txt)", re.IGNORECASE)
_URL_INSIDE = re.compile(r"\s[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_SHORT_SUFFIX = re.compile(r"\.[a-z][a-z0-9]{1,4}$", re.IGNORECASE)

# A path may contain blanks, but rarely has more words than this.
_WORDS_OF_A_PATH = 3
_WORDS_OF_A_SENTENCE = 3
_ENDS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f")
_CLOSING = " \"')\u201d\u2019"
# Thai, Lao, Japanese and Chinese have no blanks between words.
_UNSPACED = re.compile("[\u0e01-\u0eff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_LETTERS_OF_A_TEXT = 5


@cache
def words_by_kind() -> Mapping[str, Any]:
    """Return the table of words that names of columns, folders and files have."""
    table = resources.files("recordgen.formats").joinpath("words.json")
    return json.loads(table.read_text(encoding="utf-8"))


@cache
def known_words(kind: str) -> frozenset[str]:
    """Return the words of a kind."""
    return frozenset(words_by_kind()[kind])


def lists_splits(path: str) -> bool:
    """Return whether the name of a file says that numbers in it are splits."""
    return have_words("splits_in_names_of_lists", words_of(posixpath.basename(path)))


def have_words(kind: str, some: Iterable[str]) -> bool:
    """Return whether some words are of a kind."""
    return not known_words(kind).isdisjoint(some)


def field_at(row: Sequence[str], index: int) -> str:
    """Return a field, stripped, or "" if the line is shorter."""
    return row[index].strip() if index < len(row) else ""


def without_padding(fields: Sequence[str]) -> Sequence[str]:
    """Return fields without the empty fields at the end."""
    end = len(fields)
    while end and not fields[end - 1]:
        end -= 1
    return fields[:end]


def filled_at(rows: Iterable[Sequence[str]], at: int) -> list[str]:
    """Return the fields of a column, without empty ones."""
    return [row[at] for row in rows if at < len(row) and row[at]]


def kind_of(field: str) -> str:
    """Return ``image``, ``video`` or ``text`` if there is no doubt, else ""."""
    if _URL_INSIDE.search(field):
        return "text"
    if IMAGE_SUFFIX.search(field):
        return "image"  # also "Screen Shot 2021-01-01 at 10.00.00.png"
    is_short = len(field.split()) <= _WORDS_OF_A_PATH
    if is_short and (VIDEO_SUFFIX.search(field) or is_list(field)):
        return "video"
    if is_short and field.lower().endswith(".txt"):
        return "text"
    if _ADDRESS.match(field):
        return "image"
    return "text" if is_sentence(field) else ""


def likely_kind(field: str) -> str:
    """Return the likelier kind of a field, or "", for files whose fields are all in doubt."""
    if "/" in field or _SHORT_SUFFIX.search(field):
        return "image"
    return "text" if len(field.split()) > 1 or _is_unspaced(field) else ""


def is_sentence(text: str) -> bool:
    """Return whether a text reads as a sentence: it has several words, or ends like a sentence."""
    words = len(text.split())
    is_path = "/" in text and words <= _WORDS_OF_A_PATH
    has_end = text.rstrip(_CLOSING).endswith(_ENDS) and (words > 1 or _is_unspaced(text))
    return not is_path and (words >= _WORDS_OF_A_SENTENCE or has_end)


def _is_unspaced(text: str) -> bool:
    return len(_UNSPACED.findall(text)) >= _LETTERS_OF_A_TEXT


def names_media(text: str) -> bool:
    """Return whether a text has the suffix of an image or a video."""
    return IMAGE_SUFFIX.search(text) is not None or VIDEO_SUFFIX.search(text) is not None


def is_media(field: str) -> bool:
    """Return whether a field is the name of an image or a video, not a text that ends with one."""
    text = field.strip()
    words = len(text.split())
    is_name = words == 1 or ("/" in text and words <= _WORDS_OF_A_PATH)
    return is_name and names_media(text) and _URL_INSIDE.search(text) is None


def is_file(field: str) -> bool:
    """Return whether a field names a text file: a URL of a known storage, or a path to a ``.txt``.

    Several words that end with ``.txt`` are a text unless they contain a ``/``.
    """
    text = field.strip()
    if len(text.splitlines()) != 1:
        return False
    if text.lower().endswith(".txt"):
        return "/" in text or len(text.split()) == 1
    return is_known_url(text)


def is_known_url(text: str) -> bool:
    """Return whether a whole text is a URL of a known storage."""
    return _URL.fullmatch(text) is not None and storage.is_known(text)


def is_list(uri: str) -> bool:
    """Return whether a uri names a list of videos, a CSV file."""
    path = uri
    if storage.is_http(storage.normal(uri)):
        with suppress(ValueError):  # "http://[…" is not a URL
            path = urlsplit(uri).path
    return path.lower().endswith(LIST_SUFFIX)


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")


def words_of(name: str) -> list[str]:
    """Return the words and numbers of a name, in lower case.

    ``topLeftX`` → top, left, x; ``bbox_x1`` → bbox, x, 1; ``val2017`` → val, 2017
    """
    return [word.lower() for word in _WORDS.findall(name)]


def mostly(test: Callable[[str], object], values: Sequence[str]) -> bool:
    """Return whether at least half of some values pass a test."""
    misses = filterfalse(test, values)
    return bool(values) and next(islice(misses, len(values) // 2, None), None) is None


def is_like(field: str, values: Sequence[str]) -> bool:
    """Return whether a field is one of some values, or differs only in its number: ``img0``."""
    form = _DIGITS.sub("#", field)
    return field in values or ("#" in form and form in (_DIGITS.sub("#", it) for it in values))
