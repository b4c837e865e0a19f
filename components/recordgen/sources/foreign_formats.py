"""Known formats that are no import files: what they are called, and how to get an import file.

    annotations/instances_train.json   →  COCO: write a CSV of boxes …
    JPEGImages/1.jpg                   →  Pascal VOC: write a CSV of boxes …
    ImageID,Source,LabelName,XMin,…    →  Open Images: …

A file is recognised by its first bytes, a folder by its listing, a CSV by its header. Nothing here
opens a file.
"""

from __future__ import annotations

import posixpath
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from typing import NamedTuple

from recordgen.errors import SourceError

#: Enough for the first keys of a document: COCO's, behind its licenses and categories.
HEAD_BYTES = 64 * 1024


class ForeignFormat(NamedTuple):
    """A format of other tools.

    Attributes:
        name: what people call it, with its article where it needs one.
        remedy: how to get from it to something that Recordgen reads.
        per_line: it has an object per line, so that its lines may be mistakes among others.
    """

    name: str
    remedy: str
    per_line: bool = False

    def error(self, where: str, evidence: str = "") -> SourceError:
        """Return the error that names the format.

        Args:
            where: the file, file and line, or folder.
            evidence: what gives the format away, if ``where`` does not say it.
        """
        shown = f" ({evidence})" if evidence else ""
        return SourceError(f"{where}: this looks like {self.name}{shown}; {self.remedy}")


_BOXES = "write a CSV with the header filename,width,height,class,xmin,ymin,xmax,ymax"
_SHARES = "write a CSV with the header image_uri,label,xmin,ymin,xmax,ymax"
_FRAME = "read it with pandas, and convert the DataFrame"
_UNPACK = "unpack it, and name the folder or the import file in it"

PASCAL_VOC = ForeignFormat(
    "Pascal VOC",
    f"convert its XML: {_BOXES}, a line for each <object>, in pixels, with the width and height of "
    f"its <size>",
)
COCO = ForeignFormat(
    "COCO annotations",
    f"{_BOXES} and a line for each of its annotations, in pixels: a bbox is x, y, width, height, "
    f"so xmax is x + width; file_name, width and height stand in images, class names in categories",
)
YOLO = ForeignFormat(
    "YOLO labels",
    f"{_SHARES} and a line for each line of its label files: these hold class, x center, y "
    f"center, width, height, so xmin is x center - width / 2; the names of classes stand in "
    f"data.yaml or classes.txt",
)
HUGGING_FACE = ForeignFormat(
    "a Hugging Face imagefolder",
    "name its metadata.csv or metadata.jsonl itself, one for each split, and the columns in it: "
    "--columns path=file_name,label=LABEL, with the name of the column of labels for LABEL",
    per_line=True,
)
HUGGING_FACE_BOXES = ForeignFormat(
    "the metadata of a Hugging Face imagefolder with boxes",
    f"{_BOXES} and a line for each box, in pixels: a bbox of objects is x, y, width, height, so "
    f"xmax is x + width",
    per_line=True,
)
CREATE_ML = ForeignFormat(
    "Create ML annotations",
    f"{_BOXES} and a line for each annotation, in pixels: x and y of coordinates are the center, "
    f"so xmin is x - width / 2; width and height are those of the image",
)
LABEL_ME = ForeignFormat(
    "LabelMe annotations",
    f"{_BOXES} and a line for each of the shapes, in pixels: the least and the largest x and y of "
    f"its points, with imageWidth and imageHeight",
)
LABEL_STUDIO = ForeignFormat(
    "a Label Studio export",
    f"write a CSV with the header image_uri,label and a line for each choice; of rectangles, "
    f"{_SHARES}: x, y, width and height are percent of the image, so xmax is (x + width) / 100",
)
LABELBOX = ForeignFormat(
    "a Labelbox export",
    f"write a CSV with the header image_uri,label and a line for each classification; of boxes, "
    f"{_BOXES} and a line for each bounding_box, in pixels: xmin is left, xmax left + width",
    per_line=True,
)
VOTT = ForeignFormat(
    "a VoTT export",
    f"{_BOXES} and a line for each of the regions, in pixels: xmin is left of its boundingBox, "
    f"xmax left + width; path, width and height stand in asset",
)
VIA = ForeignFormat(
    "a VGG Image Annotator project",
    f"{_BOXES} and a line for each region, in pixels: xmin is x of its shape attributes, xmax "
    f"x + width; the project does not hold the width and height of images",
)
OPEN_IMAGES = ForeignFormat(
    "Open Images annotations",
    f"{_SHARES}: the path is ImageID with the folder before it and .jpg behind, the label the name "
    f"that class-descriptions has for LabelName; XMin to YMax are shares already",
)
CVAT = ForeignFormat(
    "CVAT annotations",
    f"convert its XML: {_BOXES}, a line for each <box>, in pixels, with the width and height of "
    f"its <image>",
)
XML = ForeignFormat("XML", "write a CSV or JSONL file that says the same")
TFRECORD = ForeignFormat(
    "a TFRecord file",
    "it holds examples already: read them with recordgen.train_dataset or recordgen.read",
)
PARQUET = ForeignFormat("a Parquet file", _FRAME)
ARROW = ForeignFormat("an Arrow or Feather file", _FRAME)
EXCEL = ForeignFormat("an Excel workbook", "save the sheet as CSV UTF-8")
ZIP = ForeignFormat("a ZIP archive", _UNPACK)
TAR = ForeignFormat("a tar archive", _UNPACK)
GZIP = ForeignFormat("a file packed with gzip", "unpack it")
PACKED = ForeignFormat("a packed file", "unpack it")
WEB_PAGE = ForeignFormat(
    "a web page", "a link to a shared file often gives one in its place; download the file itself"
)
PDF = ForeignFormat("a PDF", "write a CSV or JSONL file that says the same")
IMAGE = ForeignFormat("an image", "name its folder, or an import file that names it")

# How files begin; capitals do not matter.
_BEGINNINGS: Mapping[bytes, ForeignFormat] = {
    b"PAR1\x15": PARQUET,
    b"ARROW1\0": ARROW,
    b"FEA1\0": ARROW,
    b"\xff\xff\xff\xff": ARROW,  # a stream of Arrow, as Hugging Face keeps data sets
    b"\xd0\xcf\x11\xe0": EXCEL,
    b"BZh": PACKED,
    b"\xfd7zXZ\0": PACKED,
    b"\x28\xb5\x2f\xfd": PACKED,
    b"7z\xbc\xaf": PACKED,
    b"%PDF-": PDF,
    b"<!doctype html": WEB_PAGE,
    b"<html": WEB_PAGE,
    b"\xff\xd8\xff": IMAGE,
    b"\x89PNG\r\n": IMAGE,
}

_ZIP, _GZIP, _TAR = b"PK\x03\x04", b"\x1f\x8b", (b"ustar", 257)
_GZIP_WINDOW = 31  # zlib's word for gzip's header and the largest window

_XML_BEGINS = (b"<?xml", b"<annotation")
_XML_ROOT = re.compile(rb"<([A-Za-z][\w.-]*)")
_XML_ROOTS = {b"annotation": PASCAL_VOC, b"annotations": CVAT}

# Which keys a JSON document has, as key_paths gives them. All of one set must be there.
_JSON: Sequence[tuple[ForeignFormat, Sequence[frozenset[str]]]] = (
    (
        COCO,
        (
            frozenset({"images.file_name"}),
            frozenset({"annotations.image_id"}),
            frozenset({"categories.supercategory"}),
            frozenset({"licenses", "info"}),
            frozenset({"image_id", "category_id"}),  # COCO's form of results
        ),
    ),
    (CREATE_ML, (frozenset({"annotations.coordinates"}),)),
    (LABEL_ME, (frozenset({"shapes.points"}), frozenset({"shapes", "imagePath"}))),
    (
        LABEL_STUDIO,
        (
            frozenset({"annotations.result"}),
            frozenset({"completions.result"}),
            frozenset({"annotation_id", "annotator"}),
        ),
    ),
    (LABELBOX, (frozenset({"data_row.id"}), frozenset({"Labeled Data", "DataRow ID"}))),
    (
        VOTT,
        (
            frozenset({"asset.path", "regions"}),
            frozenset({"assets.*.asset.path"}),
            frozenset({"securityToken", "sourceConnection"}),
        ),
    ),
    (
        VIA,
        (
            frozenset({"_via_settings"}),
            frozenset({"_via_img_metadata"}),
            frozenset({"*.file_attributes", "*.regions"}),
        ),
    ),
    (HUGGING_FACE_BOXES, (frozenset({"file_name", "objects.bbox"}),)),
    (HUGGING_FACE, (frozenset({"file_name"}),)),
)

# Columns that only such a file has, in small letters.
_HEADERS: Sequence[tuple[ForeignFormat, frozenset[str]]] = (
    (OPEN_IMAGES, frozenset({"imageid", "labelname"})),
    (LABEL_STUDIO, frozenset({"annotation_id", "annotator"})),
    (VIA, frozenset({"region_shape_attributes"})),
)

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|"[\s\S]*\Z|[{}\[\]:,]', re.DOTALL)

# Deeper keys tell nothing, and a document may be nested at will.
_DEPTH = 5

_IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".png", ".gif", ".bmp", ".ico", ".webp", ".tif", ".tiff"}
)
_IN_VOC_FOLDER = re.compile(r"(?:^|/)jpegimages/", re.IGNORECASE)
_METADATA = ("metadata.csv", "metadata.jsonl")
# A class and a box, or a class and a polygon; and what names the classes.
_YOLO_LINE = re.compile(rb"\d+(?: (?:[01]|[01]?\.\d+(?:e-\d+)?)){4,}\s*?(?:\n|\Z)")
_YOLO_YAML = (
    re.compile(rb"^names\s*:", re.MULTILINE),
    re.compile(rb"^(?:nc|train|path)\s*:", re.M),
)
_YOLO_NAMES = frozenset({"data.yaml", "data.yml", "classes.txt", "obj.names", "_darknet.labels"})

# What files in a folder without any image are called.
_NAMES: Sequence[tuple[re.Pattern[str], ForeignFormat]] = (
    (re.compile(r"tfrecord"), TFRECORD),
    (re.compile(r"\.parquet$"), PARQUET),
    (re.compile(r"\.(arrow|feather)$"), ARROW),
    (re.compile(r"\.xlsx?$"), EXCEL),
    (re.compile(r"\.zip$"), ZIP),
    (re.compile(r"\.(tar|tgz|tar\.\w+)$"), TAR),
)


def of_file(head: bytes) -> ForeignFormat | None:
    """Return the format of a file, or None if it may be an import file.

    Args:
        head: its first bytes, up to ``HEAD_BYTES``.
    """
    text = head.removeprefix(b"\xef\xbb\xbf")
    lower = text.lower()
    if head.startswith(_ZIP):
        is_workbook = b"[Content_Types].xml" in head or b"xl/" in head
        return EXCEL if is_workbook else ZIP
    if head.startswith(_GZIP):
        return _in_gzip(head)
    if head.startswith(_TAR[0], _TAR[1]):
        return TAR
    if _is_tfrecord(head):
        return TFRECORD
    if text.lstrip().startswith((b"{", b"[")):
        return of_json(text)
    if _is_row_of_markup(text):
        return None
    if _YOLO_LINE.match(text) or all(key.search(text) for key in _YOLO_YAML):
        return YOLO
    if lower.startswith(_XML_BEGINS):
        root = _XML_ROOT.search(lower)
        return _XML_ROOTS.get(root[1], XML) if root else XML
    return next((f for begin, f in _BEGINNINGS.items() if lower.startswith(begin.lower())), None)


def of_json(head: bytes) -> ForeignFormat | None:
    """Return the format of a JSON document, or of the first of several objects.

    Args:
        head: its first bytes; it may go on.
    """
    keys = key_paths(head.decode("utf-8", "replace"))
    for found, choices in _JSON:
        if any(all(_has(keys, key) for key in wanted) for wanted in choices):
            return found
    return None


def of_header(fields: Iterable[str]) -> ForeignFormat | None:
    """Return the format of a CSV file with such a first line."""
    names = {field.strip().lower() for field in fields}
    return next((found for found, wanted in _HEADERS if wanted <= names), None)


def of_folder(names: Sequence[str]) -> tuple[ForeignFormat, str] | None:
    """Return the format of a folder, and a file that gives it away.

    Args:
        names: all files below the folder, relative to it, sorted.
    """
    # A folder has many images and few other files: look closely at the others alone.
    others = [name for name in names if _suffix(name) not in _IMAGE_SUFFIXES]
    has_images = len(others) < len(names)
    stems: set[str] = set()
    if has_images and any(_suffix(name) in (".xml", ".txt") for name in others):
        stems = {_stem(name) for name in names if _suffix(name) in _IMAGE_SUFFIXES}
    for name in others:
        if _suffix(name) == ".xml" and ("annotations" in _folders(name) or _stem(name) in stems):
            return PASCAL_VOC, name
        if has_images and is_metadata(name):
            return HUGGING_FACE, name
    if (image := next(filter(_IN_VOC_FOLDER.search, names), None)) is not None:
        return PASCAL_VOC, image
    if stems and (label := _yolo_label(others, stems)):
        return YOLO, label
    for name in () if has_images else others:
        for pattern, found in _NAMES:
            if pattern.search(posixpath.basename(name).lower()):
                return found, name
    return None


def is_metadata(name: str) -> bool:
    """Return whether a file is named as Hugging Face names what it knows of images."""
    return posixpath.basename(name) in _METADATA


def key_paths(text: str) -> frozenset[str]:
    """Return the keys of the first value in a JSON text, which may be cut off anywhere.

    A key stands behind those of the objects that it is in; lists add nothing:
    ``{"images": [{"id": 1, "file_na`` → ``images``, ``images.id``.
    """
    return frozenset(_walk(text))


def _walk(text: str) -> Iterator[str]:
    path: list[str] = []
    key = ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "{[":
            path.append(key)
            key = ""
        elif token in "}]":
            del path[-1:]
            key = ""
            if not path:
                return
        elif token == ",":
            key = ""
        elif token == ":":
            if len(path) <= _DEPTH:
                yield ".".join(filter(None, (*path, key)))
        else:
            key = token[1:-1]


def _has(keys: frozenset[str], wanted: str) -> bool:
    if "*" not in wanted:
        return wanted in keys
    return any(fnmatchcase(key, wanted) for key in keys)


def _in_gzip(head: bytes) -> ForeignFormat:
    try:
        inside = zlib.decompressobj(_GZIP_WINDOW).decompress(head, HEAD_BYTES)
    except zlib.error:
        return GZIP
    found = of_file(inside) if not inside.startswith(_GZIP) else None
    return found if found in (TAR, TFRECORD) else GZIP


def _is_tfrecord(head: bytes) -> bool:
    """Return whether a file begins with the length of a record, and that with its checksum."""
    if len(head) < 12 or head[4:8] != bytes(4):  # nobody has records of 4 GiB
        return False
    from recordgen.records.tfrecord import frame_head

    return frame_head(int.from_bytes(head[:8], "little")) == head[:12]


def _is_row_of_markup(text: bytes) -> bool:
    """Return whether the first line is a text and its label: ``<html>Hello</html>,spam``."""
    line = text.partition(b"\n")[0]
    return b'"' not in line and line.rfind(b",") > line.rfind(b">") > 0


def _suffix(name: str) -> str:
    return name[name.rfind(".") :].lower()


def _stem(name: str) -> str:
    return name[: name.rfind(".")]


def _folders(name: str) -> list[str]:
    return name.lower().split("/")[:-1]


def _yolo_label(names: Sequence[str], stems: Set[str]) -> str | None:
    """Return a file of labels whose image lies in ``images/`` for ``labels/``, or beside it.

    Args:
        names: the files that are no images.
        stems: the names of images, without their suffixes.
    """
    has_classes = any(posixpath.basename(name).lower() in _YOLO_NAMES for name in names)
    for name in names:
        if _suffix(name) != ".txt":
            continue
        parts = _stem(name).split("/")
        twins = {
            "/".join([*parts[:at], "images", *parts[at + 1 :]])
            for at, part in enumerate(parts[:-1])
            if part.lower() == "labels"
        }
        if not stems.isdisjoint(twins) or (has_classes and _stem(name) in stems):
            return name
    return None
