"""The TFRecords that google/tensorflow-recorder wrote are converted."""

import base64
import gzip

import numpy as np
import pytest

import recordgen
from recordgen.core.records import RECORDS
from recordgen.core.records.example import serialize_example
from recordgen.errors import UsageError
from tests.conftest import noise

# The images of each split: modes, of which TFRecorder knows the palette no more.
MODES = {"train": ("RGB", "L", "RGBA", "P"), "validation": ("RGB",), "test": ("CMYK",)}


def recorded(image, number, split):
    """Return the record of an image, as TFRecorder's ``beam_image`` makes it."""
    values = {
        "image": base64.b64encode(image.tobytes(), altchars=b"-_"),
        "image_name": f"{number}.{'jpg' if image.mode == 'CMYK' else 'png'}".encode(),
        **{"image_width": image.width, "image_height": image.height},
        **{"image_channels": 1 if "L" in image.mode else 3, "label": number % 2},
        "split": split.upper().encode(),
    }
    return b"".join(RECORDS.frame(serialize_example(values)))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_pixels_labels_and_splits_come_back(suffix, tmp_path):
    """Pixels are the same, labels have their names, and palettes are lost.

    Readers name the command that converts them.
    """
    (tmp_path / "transform_fn/assets").mkdir(parents=True)
    (tmp_path / "transform_fn/assets/vocab_compute_and_apply_vocabulary").write_text("dog\ncat\n")
    expected = {}
    for split, modes in MODES.items():
        pictures = [noise(40, 30, seed=ord(split[0]) + at) for at in range(len(modes))]
        pictures = [each.convert(mode) for each, mode in zip(pictures, modes, strict=True)]
        data = b"".join(recorded(each, at, split) for at, each in enumerate(pictures))
        path = tmp_path / f"{split}-00000-of-00001.tfrecord{suffix}"
        path.write_bytes(gzip.compress(data) if suffix else data)
        expected |= {
            (split, str(at)): (pictures[at], ("dog", "cat")[at % 2]) for at in range(len(modes))
        }
    files = f"{tmp_path}/*.tfrecord{suffix}"
    for read in (recordgen.load, lambda files: recordgen.source(files).images(8)):
        with pytest.raises(UsageError, match=f"recordgen convert {tmp_path}"):
            read(files)
    found = recordgen.convert(tmp_path, tmp_path / "out", lint="-ALL", max_reject_fraction=0.5)
    assert found.dataset.labels == ("cat", "dog")
    del expected["train", "3"]
    assert sum(found.dataset.rows.rejected.values()) == 1
    read = 0
    for split in found.dataset.splits:
        source = recordgen.source(tmp_path / "out", split)
        for example, (pixels, number) in zip(source, source.images(), strict=True):
            name = example["image/source_id"].rpartition("/")[2][0]
            picture, label = expected[{"eval": "validation"}.get(split, split), name]
            np.testing.assert_array_equal(pixels, np.asarray(picture.convert("RGB")))
            assert found.dataset.labels[number] == label
            read += 1
    assert read == len(expected)
