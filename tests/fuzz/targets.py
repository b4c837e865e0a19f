"""The fuzzed functions: they take bytes and may only raise Recordgen's own errors."""

import io
import os
import tempfile
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa

from recordgen.core.dataset.manifest import DATASET_FILE, Dataset, read_dataset
from recordgen.core.image_settings import PayloadSettings
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.core.rows.columns import read_parquet
from recordgen.errors import PayloadError, RecordError, SourceError
from recordgen.messages.masking import masked, masked_values, without_secrets
from recordgen.payloads.check import check_image
from recordgen.payloads.drawing import draw_boxes, to_thumbnail
from recordgen.payloads.opening import file_header
from recordgen.rejects import RejectCode
from recordgen.storage.access import Access
from tests.settings import payload_settings

CORPUS = Path(__file__).parent / "corpus"

_ACCESS = Access(("https",), ("https://host/images", "/data"))

#: The columns of the files in the corpus of ``parquet``.
PARQUET = pa.schema({"name": pa.string(), "size": pa.int64(), "parts": pa.list_(pa.int64())})

# Decoded in this process, however slow: a decoder that crashes must end the fuzzer.
_PIXELS = 100_000
_LIMIT = {"limit": f"pixels={_PIXELS},seconds=1000000"}
_WHOLE = payload_settings(**_LIMIT)
_DECODING = (
    _WHOLE,
    PayloadSettings(limit=_WHOLE.limit, needs_looks=True),
    payload_settings(**_LIMIT, check="header", image_size="8max"),
    payload_settings(**_LIMIT, check="none"),
)

# In memory if possible, because each input is written to a file.
_FOLDER = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


def fuzz_decode(data):
    """A whole image is checked, stored and shown, or refused; that takes little memory."""
    warnings.simplefilter("ignore")  # Pillow's, about metadata
    calls = [partial(check_image, data, each) for each in _DECODING]
    with suppress(PayloadError):
        if file_header(data).decoded_pixels <= _PIXELS:
            calls += [partial(to_thumbnail, data, 16), partial(draw_boxes, data, ())]
    codes = set[str]()
    for call in calls:
        try:
            call()
        except PayloadError as exc:
            codes.add(exc.code)
    assert RejectCode.OUT_OF_MEMORY not in codes


def fuzz_tfrecord(data):
    """Records are read up to the first damage, and around it; none is counted twice."""
    path = os.path.join(_FOLDER.name, "a.rec")
    with open(path, "wb") as file:
        file.write(data)
    records = []
    with suppress(RecordError):
        records.extend(RECORDS.read(path))
    around = list(RECORDS.read_around(path))
    assert around[: len(records)] == records
    assert len(around) == len(records) or isinstance(around[len(records)], RecordError)
    with suppress(RecordError):
        assert RECORDS.count(path) >= len(records)
    for record in records:
        with suppress(ValueError):
            parse_example(record)


def fuzz_manifest(data):
    """A ``dataset.json`` is refused, or written again as it was read."""
    path = os.path.join(_FOLDER.name, DATASET_FILE)
    with open(path, "wb") as file:
        file.write(data)
    with suppress(SourceError):
        dataset = read_dataset(path)
        assert repr(Dataset.from_json(dataset.to_json())) == repr(dataset)


def fuzz_url(data):
    """Whatever surrounds them, a password and a token are in no name and in no message."""
    text = data.decode("utf-8", "replace")
    for public in (without_secrets(text, is_url=True), masked(text), masked_values(text)):
        assert len(public) <= 4 * len(text) + 9
    with_user = f"https://me:p1anted@host/{text}"
    with_token = f"https://host/?{text}&clientSecret=p1anted"
    for url in (with_user, with_token):
        assert "p1anted" not in without_secrets(url).replace(text, "")
        assert "p1anted" not in masked(url)
        assert "p1anted" not in masked_values(url)
    _ACCESS.refusal(f"https://host/{text}", "/data/rows.csv")
    _ACCESS.refusal(text, "/data/rows.csv")


def fuzz_parquet(data):
    """A Parquet file has the wanted columns, or is refused."""
    with suppress(ValueError):
        assert read_parquet(io.BytesIO(data), PARQUET).schema.names == PARQUET.names


TARGETS = {
    "decode": fuzz_decode,
    "tfrecord": fuzz_tfrecord,
    "manifest": fuzz_manifest,
    "url": fuzz_url,
    "parquet": fuzz_parquet,
}
