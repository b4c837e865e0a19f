"""All formats of boxes have the same boxes, splits and classes of the same images."""

import pickle
from itertools import chain

import pytest

import recordgen
from recordgen.conversion.api import conversion_of
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import PictureFormat
from recordgen.formats.source import open_source
from recordgen.options import ConvertOptions
from recordgen.registry import DOCUMENTS, FORMATS, OWN_FORMATS
from recordgen.tasks import ObjectDetection
from tests.conftest import run_python
from tests.formats.boxes import boxes_of
from tests.formats.written import CLASSES, WRITERS, write

# How images get into a container is another subject: the documents in it are no files.
CONTAINERS = {"parquet", "tfrecord", "webdataset"}


def test_every_format_of_boxes_is_written_here():
    """A new format of boxes needs a writer in these tests."""
    found = {name: FORMATS[name] for name in OWN_FORMATS}
    boxes = {
        name
        for name, each in found.items()
        if issubclass(each, PictureFormat) and ObjectDetection.name in each.tasks
    }
    assert boxes - CONTAINERS == set(WRITERS)


def test_a_row_of_images_loads_no_other_format(tmp_path):
    """Rows of the own format load no module of another."""
    (tmp_path / "a.csv").write_text("TRAIN,a.jpg,cat\n")
    code = (
        "import sys; from recordgen.formats.source import open_source;"
        "from recordgen.options import ConvertOptions; open_source('a.csv', ConvertOptions());"
        "print(*(name for name in sys.modules if name.startswith('recordgen.formats.')))"
    )
    loaded = run_python("-c", code, cwd=tmp_path).stdout.split()
    others = {OWN_FORMATS[name].partition(":")[0] for name in OWN_FORMATS if name != "csv"}
    asked = {"open_images", "via", "tfrecord"}  # may have such a name
    loaded_others = others & {*loaded} - {f"recordgen.formats.{name}" for name in asked}
    assert loaded_others == {"recordgen.formats.line_files"}


@pytest.mark.parametrize("name", WRITERS)
def test_the_folder_is_enough(name, tmp_path, make_pictures):
    """No option says the format, the task, the splits or the classes; workers read the same rows.

    A format is only asked about a source whose name ends as it declares.
    """
    make_pictures("train/a.jpg", "train/b.jpg", "valid/c.jpg")
    write(name, tmp_path / "in")
    evidence = FORMATS[name]().detect(Listing.of(f"{tmp_path}/in/"))
    assert all(not path or path.endswith(DOCUMENTS[name]) for path in evidence.documents)
    source, options = open_source(f"{tmp_path}/in/", ConvertOptions())
    here = (conversion_of(options).reader, source.parts())
    rows, expected = (
        [*chain.from_iterable(map(reader.read_part, parts))]
        for reader, parts in (pickle.loads(pickle.dumps(here)), here)
    )
    assert rows == expected != []
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
