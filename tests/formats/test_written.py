"""All formats of boxes have the same boxes, splits and classes of the same images."""

import pytest

import recordgen
from recordgen.formats.pictures import PictureFormat
from recordgen.registry import FORMATS, OWN_FORMATS
from recordgen.tasks import ObjectDetection
from tests.formats.boxes import boxes_of
from tests.formats.written import CLASSES, WRITERS, write

pytestmark = pytest.mark.once

# How images get into a container is another subject: the documents in it are no files.
CONTAINERS = {"parquet", "tfrecord", "webdataset"}


def test_every_format_of_boxes_is_written_here():
    found = {name: FORMATS[name] for name in OWN_FORMATS}
    boxes = {
        name
        for name, each in found.items()
        if issubclass(each, PictureFormat) and ObjectDetection.name in each.tasks
    }
    assert boxes - CONTAINERS == set(WRITERS)


@pytest.mark.parametrize("name", WRITERS)
def test_the_folder_is_enough(name, tmp_path, make_pictures):
    """No option says the format, the task, the splits or the classes."""
    make_pictures("train/a.jpg", "train/b.jpg", "valid/c.jpg")
    write(name, tmp_path / "in")
    dataset = recordgen.convert(str(tmp_path / "in"), tmp_path / "out").dataset
    assert (dataset.options["format"], dataset.task) == (name, ObjectDetection.name)
    assert dataset.labels == CLASSES
    boxes = [("cat", 0, [0.1, 0.25, 0.2, 0.5]), ("dog", 1, [0, 0, 1, 1])]
    assert boxes_of(tmp_path / "out") == {
        "train/a.jpg": ("train", boxes),
        "train/b.jpg": ("train", boxes),
        "valid/c.jpg": ("eval", boxes),
    }
    assert (dataset.rows.adjusted, dataset.rows.rejected) == ({}, {})
