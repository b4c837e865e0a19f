"""Formats of other tools that Recordgen does not read: how to make an import file from them.

    {"data_row": {"id": "ck1"}, …}     →  Labelbox: write a CSV …
    @relation iris                     →  ARFF: …

A file is recognised by its first bytes or its name, a CSV by its header. This module opens no file.
"""

from __future__ import annotations

import posixpath
import re
import zlib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from recordgen.errors import SourceError
from recordgen.formats.json_items import key_paths

#: Enough for the first keys of a document, including COCO's, which follow licenses and categories.
HEAD_BYTES = 64 * 1024


class ForeignFormat(NamedTuple):
    """A format of another tool: its name, the remedy, and how to recognise it.

    Attributes:
        name: its usual name, with an article if it needs one.
        remedy: how to turn it into something that Recordgen reads.
        begins: the first bytes of its files; case does not matter.
        keys: patterns of key paths in a JSON document, see :func:`key_paths`; paths joined by
            ``&`` must all be present.
        files: a pattern of the names of its files in a folder without images.
        per_line: it has one object per line, so single lines may be mistakes in an import file.
    """

    name: str
    remedy: str
    begins: Sequence[bytes] = ()
    keys: Sequence[str] = ()
    files: str = ""
    per_line: bool = False

    def error(self, where: str, evidence: str = "") -> SourceError:
        """Return the error that names the format.

        Args:
            where: the file, file and line, or folder.
            evidence: what shows the format, if ``where`` does not.
        """
        shown = f" ({evidence})" if evidence else ""
        return SourceError(f"{where}: this looks like {self.name}{shown}; {self.remedy}")


_BOXES = "write a CSV with the header filename,width,height,class,xmin,ymin,xmax,ymax"
_FRAME = "read it with pandas, and convert the DataFrame"
_UNPACK = "unpack it, and pass the folder or the import file in it"
_REWRITE = "write a CSV or JSONL file with the same content"

XML = ForeignFormat("XML", _REWRITE)
YOLO = ForeignFormat(
    "YOLO labels",
    "pass its folder, with a data.yaml or classes.txt that names the classes",
)
ARFF = ForeignFormat(
    "ARFF",
    "write a CSV: a header with the names in its @attribute lines, and the lines below @data; "
    "comments that begin with % go",
)
TFRECORD = ForeignFormat(
    "a TFRecord file",
    "it already contains examples: read them with recordgen.train_dataset or recordgen.read; only "
    "records of images are converted again",
    files=r"tfrecord",
)
ZIP = ForeignFormat(
    "a ZIP archive",
    f"{_UNPACK}, or pass the archive itself",
    begins=[b"PK\x03\x04"],
    files=r"\.zip$",
)
TAR = ForeignFormat(
    "a tar archive",
    f"{_UNPACK}; a .tar that is not packed is read as it is",
    files=r"\.(tar|tgz|tar\.\w+)$",
)
GZIP = ForeignFormat("a file packed with gzip", "unpack it", begins=[b"\x1f\x8b"])
EXCEL = ForeignFormat(
    "an Excel workbook",
    "save the sheet as CSV UTF-8",
    begins=[b"\xd0\xcf\x11\xe0"],
    files=r"\.xlsx?$",
)

LABEL_STUDIO = ForeignFormat(
    "a Label Studio export as JSON-MIN or CSV",
    "export it as JSON",
    keys=["annotation_id&annotator"],
)

# The first match wins.
_FORMATS: Sequence[ForeignFormat] = (
    LABEL_STUDIO,
    ForeignFormat(
        "a Labelbox export",
        f"write a CSV with the header image_uri,label and a line for each classification; for "
        f"boxes, {_BOXES} and a line for each bounding_box, in pixels: xmin is left, xmax left + "
        f"width",
        keys=["data_row.id", "Labeled Data&DataRow ID"],
        per_line=True,
    ),
    ForeignFormat(
        "a Supervisely project",
        "export it as COCO or YOLO, and convert that folder",
        keys=["objects&tags&size.height", "classes.title&projectType"],
    ),
    ForeignFormat(
        "a VoTT export",
        f"{_BOXES} and a line for each of the regions, in pixels: xmin is left of its boundingBox, "
        f"xmax left + width; path, width and height are in asset",
        keys=["asset.path&regions", "assets.*.asset.path", "securityToken&sourceConnection"],
    ),
    ForeignFormat("a Parquet file", _FRAME, begins=[b"PAR1\x15"], files=r"\.parquet$"),
    ForeignFormat(
        "an Arrow stream of Hugging Face's datasets",
        "write Parquet files, and convert them: datasets.load_from_disk(FOLDER).to_parquet(FILE)",
        begins=[b"\xff\xff\xff\xff"],
        files=r"^(data|cache)-.*\.arrow$",
    ),
    ForeignFormat(
        "an Arrow or Feather file",
        _FRAME,
        begins=[b"ARROW1\0", b"FEA1\0"],
        files=r"\.(arrow|feather)$",
    ),
    TFRECORD,
    ForeignFormat(
        "an ArrayRecord file",
        "prepare the dataset with file_format='tfrecord', and convert that one",
        files=r"\.array_record",
    ),
    EXCEL,
    ZIP,
    TAR,
    ForeignFormat(
        "a packed file", "unpack it", [b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf"]
    ),
    ForeignFormat(
        "a web page",
        "a link to a shared file often leads to a web page; download the file itself",
        begins=[b"<!doctype html", b"<html"],
    ),
    ForeignFormat(
        "a Git LFS pointer",
        "fetch the file itself: git lfs pull",
        begins=[b"version https://git-lfs.github.com/spec/"],
    ),
    ForeignFormat("a PDF", _REWRITE, begins=[b"%PDF-"]),
    ForeignFormat(
        "an image",
        "pass its folder, or an import file that names it",
        begins=[b"\xff\xd8\xff", b"\x89PNG\r\n"],
    ),
)

_GZIP_WINDOW = 31  # zlib's code for gzip's header and the largest window
_TAR_MARK, _TAR_MARK_AT = b"ustar", 257
_XML_BEGINS = (b"<?xml", b"<annotation")

# A class and a box, or a class and a polygon.
_YOLO_LINE = re.compile(rb"\d+(?: (?:[01]|[01]?\.\d+(?:e-\d+)?)){4,}\s*?(?:\n|\Z)")
_ARFF_KEYS = [re.compile(rb"^@%b\s" % key, re.I | re.M) for key in (b"relation", b"attribute")]
_YOLO_YAML = (
    re.compile(rb"^names\s*:", re.MULTILINE),
    re.compile(rb"^(?:nc|train|path)\s*:", re.M),
)


def of_file(head: bytes) -> ForeignFormat | None:
    """Return the format of a file with these first bytes, or None if it may be an import file."""
    text = head.removeprefix(b"\xef\xbb\xbf")
    lower = text.lower()
    if head[_TAR_MARK_AT:].startswith(_TAR_MARK):
        return TAR
    if head.startswith(tuple(GZIP.begins)):
        return _in_gzip(head)
    if _is_tfrecord(head):
        return TFRECORD
    if text.lstrip().startswith((b"{", b"[")):
        return of_json(text)
    if _is_row_of_markup(text):
        return None
    if all(key.search(text) for key in _ARFF_KEYS):
        return ARFF
    if _YOLO_LINE.match(text) or all(key.search(text) for key in _YOLO_YAML):
        return YOLO
    if lower.startswith(_XML_BEGINS):
        return XML
    begins = ((found, begin.lower()) for found in _FORMATS for begin in found.begins)
    found = next((found for found, begin in begins if lower.startswith(begin)), None)
    is_workbook = found is ZIP and (b"[Content_Types].xml" in head or b"xl/" in head)
    return EXCEL if is_workbook else found


def _is_tfrecord(head: bytes) -> bool:
    from recordgen.core.records import RECORDS

    return RECORDS.is_mine(head)


def of_json(head: bytes) -> ForeignFormat | None:
    """Return the format of a JSON document, or of JSON lines, with these first bytes."""
    there = key_paths(head.decode("utf-8", "replace"))
    for found in _FORMATS:
        for keys in found.keys:
            if all(any(fnmatchcase(key, k) for key in there) for k in keys.split("&")):
                return found
    return None


def of_header(fields: Iterable[str]) -> ForeignFormat | None:
    """Return the format of a CSV file with this first line."""
    names = {field.strip().lower() for field in fields}
    return LABEL_STUDIO if {"annotation_id", "annotator"} <= names else None


def of_names(names: Iterable[str]) -> tuple[ForeignFormat, str] | None:
    """Return the format of files without images among them, and the first file that shows it."""
    found = ((kind, name) for name in names for kind in _FORMATS if kind.files)
    return next(
        ((kind, n) for kind, n in found if re.search(kind.files, posixpath.basename(n).lower())),
        None,
    )


def _in_gzip(head: bytes) -> ForeignFormat:
    try:
        inside = zlib.decompressobj(_GZIP_WINDOW).decompress(head, HEAD_BYTES)
    except zlib.error:
        return GZIP
    found = of_file(inside) if not inside.startswith(tuple(GZIP.begins)) else None
    return found if found in (TAR, TFRECORD) else GZIP


def _is_row_of_markup(text: bytes) -> bool:
    """Return whether the first line is a text with a label: ``<html>Hello</html>,spam``."""
    line = text.partition(b"\n")[0]
    return line.startswith(b"<") and b'"' not in line and line.rfind(b",") > line.rfind(b">") > 0
