"""DataFrames that hold images: the bytes of cells become the bytes of records."""

import gc
import io
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import recordgen
from recordgen.errors import UsageError
from recordgen.formats.source import open_source
from recordgen.options import ConvertOptions
from tests.conftest import stored_examples
from tests.formats.boxes import examples_of
from tests.formats.containers import image


def pillow(seed):
    return Image.open(io.BytesIO(image(seed)))


# how a cell holds an image, the uri of the first row
CELLS = {
    "bytes": (image, "DataFrame/0.jpg"),
    "bytearray": (lambda seed: bytearray(image(seed)), "DataFrame/0.jpg"),
    "dict": (lambda seed: {"bytes": image(seed), "path": f"x/{seed}.jpg"}, "DataFrame/0/0.jpg"),
    "dict without a path": (lambda seed: {"bytes": image(seed), "path": None}, "DataFrame/0.jpg"),
}


@pytest.mark.parametrize(("cell", "uri"), CELLS.values(), ids=CELLS)
def test_bytes(cell, uri, tmp_path):
    """A cell may hold an image's bytes, with or without a path."""
    frame = pd.DataFrame({"image": map(cell, range(4)), "label": ["cat", "dog"] * 2})
    recordgen.convert(frame, tmp_path, lint="-ALL")
    found = {uri: values for uri, (_, values) in examples_of(tmp_path).items()}
    first = found[uri]
    assert (first["image/encoded"], first["image/class/text"]) == ([image(0)], [b"cat"])
    stored = sorted(values["image/encoded"][0] for values in found.values())
    assert stored == sorted(map(image, range(4)))


# an image, its pixels, and those of one channel
PIXELS = [pillow(0), *(np.asarray(pillow(0))[..., at] for at in (slice(3), 0, slice(1)))]


@pytest.mark.parametrize("pixels", PIXELS)
def test_pixels_become_png(pixels, tmp_path):
    """Pillow's images and arrays, also gray ones, are stored as PNG with the same pixels."""
    frame = pd.DataFrame({"image": [pixels], "label": ["cat"]})
    recordgen.convert(frame, tmp_path, lint="-ALL", labels="text")
    [(_, values)] = stored_examples(tmp_path)
    assert values["image/format"] == [b"png"]
    [data] = values["image/encoded"]
    assert np.array_equal(Image.open(io.BytesIO(data)), np.squeeze(pixels))


def test_boxes_in_pixels_have_the_size_of_the_image_in_the_cell(tmp_path):
    """An image that no file holds says its size, too."""
    half = [[0, 0, pillow(0).width / 2, pillow(0).height / 2]]
    frame = pd.DataFrame({"image": [image(0)], "kind": [["cat"]], "box": [half]})
    recordgen.convert(frame, tmp_path, lint="-ALL", columns="image=image,label=kind,xyxy=box")
    [(_, values)] = stored_examples(tmp_path)
    assert [*values["image/object/bbox/xmax"], *values["image/object/bbox/ymax"]] == [0.5, 0.5]


def test_paths_gaps_and_other_columns(tmp_path):
    """A dict without bytes is a path; a missing cell is a reject; other columns do not matter."""
    (tmp_path / "a.jpg").write_bytes(image(9))
    cells = [{"bytes": None, "path": str(tmp_path / "a.jpg")}, None, {"bytes": image(1)}]
    others = {"thumbnail": [image(7)] * 3, "vectors": [np.zeros((2, 2))] * 3}
    frame = pd.DataFrame({"image": cells, "label": list("xyy"), **others}, index=[5, 5, 5])
    options = {"lint": "-ALL", "max_reject_fraction": 1}
    run = recordgen.convert(
        frame, tmp_path / "out", columns={"path": "image", "label": "label"}, **options
    )
    assert dict(run.dataset.rows.rejected) == {"no_path": 1}
    found = [values["image/encoded"] for _, values in stored_examples(tmp_path / "out")]
    assert sorted(found) == sorted([[image(9)], [image(1)]])


def test_declared_columns(tmp_path):
    """Rows with several images."""
    frame = pd.DataFrame({"day": [image(0)], "night": [{"bytes": image(1), "path": "b.jpg"}]})
    schema = {"day": "image", "night": "image"}
    recordgen.convert(frame, tmp_path, schema=schema, lint="-ALL")
    [(_, values)] = stored_examples(tmp_path)
    assert (values["day/encoded"], values["night/encoded"]) == ([image(0)], [image(1)])


def test_the_file_lives_as_long_as_the_run(tmp_path, monkeypatch):
    """It is removed afterwards, and its time is a digest of its bytes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    frame = pd.DataFrame({"image": [image(0), image(1)], "label": ["cat", "dog"]})
    times = set()
    for _ in range(2):
        source, _ = open_source(frame, ConvertOptions())
        [file] = tmp_path.glob("*.images")
        times.add(file.stat().st_mtime_ns)
        assert file.read_bytes() == image(0) + image(1)
        del source
        gc.collect()
    assert len(times) == 1
    recordgen.convert(frame, tmp_path / "out", lint="-ALL")
    gc.collect()
    assert not list(Path(tmp_path).glob("*.images"))


# a cell, the options
REFUSED = [
    (image(0), {"task": "tabular"}),
    (np.zeros((8, 8, 3)), {}),
    (np.zeros((3, 8, 8), np.uint8), {}),
]


@pytest.mark.parametrize(("cell", "options"), REFUSED)
def test_cells_that_no_row_can_hold(cell, options):
    """Images in a table, and arrays that are no images, are refused with advice."""
    frame = pd.DataFrame({"image": [cell] * 3, "label": [1, 2, 3]})
    with pytest.raises(UsageError, match=r"recordgen\.write"):
        recordgen.check(frame, **options)
