"""The TFRecords of google/tensorflow-recorder, whose images are raw pixels in base64.

    out/train-00000-of-00001.tfrecord.gz      image: "3q2-7w…", image_name: "rex.jpg", label: 1,
                                              image_width: 40, image_height: 30, image_channels: 3,
                                              split: "TRAIN"
    out/transform_fn/assets/vocab_…           cat, dog: the names of the labels, a line each

become the rows of a DataFrame: TRAIN, the picture, dog. Pixels become PNG in a temporary file.
"""

from __future__ import annotations

import base64
import binascii
import io
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recordgen import storage
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_record
from recordgen.errors import RecordError
from recordgen.features import TFRECORDER
from recordgen.formats.frame_images import FrameImages
from recordgen.formats.listing import Listing
from recordgen.formats.named_records import SOURCE
from recordgen.tables.roles import LABEL_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

# Files that were discarded hold no images.
_FILE = re.compile(r"(?:train|validation|test)-\d{5}-of-\d{5}\.tfrecord(?:\.gz)?$")
_OF_IMAGES = (*TFRECORDER, "image_name")
_VOCABULARY = "transform_fn/assets/vocab_"

# Pillow's modes by the declared channels and the bytes of a pixel; only a JPEG has CMYK. Palettes,
# which the records lack, have one byte of three channels.
_MODES = {(1, 1): "L", (3, 3): "RGB", (3, 4): "RGBA"}
_JPEG = (".jpg", ".jpeg")


def find_frame(listings: Sequence[Listing]) -> tuple[pd.DataFrame, FrameImages] | None:
    """Return the rows of TFRecorder's files and their images; None if the files are others.

    Raises: RecordError: a file is damaged; StorageError: storage failed.
    """
    if not all(map(_is_mine, listings)):
        return None
    import pandas as pd

    images = FrameImages(posixpath.basename(listings[0].root.rstrip("/")) or SOURCE)
    rows = [row for it in listings for name in _names_in(it) for row in _rows(it, name, images)]
    return pd.DataFrame(rows), images


def _names_in(listing: Listing) -> Sequence[str]:
    names = [listing.only] if listing.only else listing.others
    return [name for name in names if _FILE.match(posixpath.basename(name))]


def _is_mine(listing: Listing) -> bool:
    try:
        first = [next(_records(listing, name), {}) for name in _names_in(listing)[:1]]
    except (OSError, RecordError):
        return False  # its format says what is wrong with it
    return any({*TFRECORDER} <= {*values} for values in first)


def _records(listing: Listing, name: str) -> Iterator[Mapping[str, Any]]:
    path = f"{listing.root}{name}"
    for number, record in enumerate(RECORDS.read(path)):
        yield parse_record(record, f"{path}: record {number}")


def _rows(listing: Listing, file: str, images: FrameImages) -> Iterator[Mapping[str, Any]]:
    classes = _classes(listing, posixpath.dirname(file))
    for values in _records(listing, file):
        row = {name: _text(each) for name, each in values.items() if name not in _OF_IMAGES}
        for name in row.keys() & LABEL_COLUMNS:
            row[name] = classes.get(row[name], row[name])
        split = posixpath.basename(file).partition("-")[0].upper()
        name = _text(values.get("image_name", ()))
        yield {"split": split, **row, "image_uri": images.add(_png(values, name), name)}


def _classes(listing: Listing, folder: str) -> Mapping[str, str]:
    """Return the names of labels by number, if TensorFlow Transform numbered one column."""
    begin = posixpath.join(folder, _VOCABULARY)
    paths = [name for name in listing.others if name.startswith(begin)]
    text = storage.read_text(f"{listing.root}{paths[0]}") if len(paths) == 1 else ""
    return {str(number): name for number, name in enumerate(text.splitlines())}


def _text(values: Sequence[Any]) -> str:
    texts = (it.decode("utf-8", "replace") if isinstance(it, bytes) else str(it) for it in values)
    return " ".join(texts)


def _png(values: Mapping[str, Any], name: str) -> bytes:
    """Return the image of a record; nothing if its bytes are not the pixels of its size."""
    from PIL import Image

    try:
        [data], [width], [height], [channels] = (values[name] for name in TFRECORDER)
        pixels = base64.b64decode(data, altchars=b"-_", validate=True)
        mode = _MODES[channels, len(pixels) / (width * height)]
        if mode == "RGBA" and name.lower().endswith(_JPEG):
            mode = "CMYK"
        out = io.BytesIO()
        image = Image.frombytes(mode, (width, height), pixels)
        image = image.convert("RGB") if mode == "CMYK" else image
        image.save(out, "PNG", compress_level=1)
    except (binascii.Error, KeyError, TypeError, ValueError, ZeroDivisionError):
        return b""
    return out.getvalue()
