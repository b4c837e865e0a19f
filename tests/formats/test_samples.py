"""What detection reads of a source is read once, also for the preview and the types of tables."""

import pytest

from recordgen.formats.source import open_source
from recordgen.options import ConvertOptions
from tests.formats.test_coco import coco, image
from tests.opened import opened

# name, text
IMPORT_FILES = [
    ("a.csv", "TRAIN,a.jpg,cat\n"),
    ("a.csv", "image_uri,label\na.jpg,cat\n"),
    ("a.csv", "a.mp4,run,0,1\n"),
    ("a.jsonl", '{"imageGcsUri": "a.jpg"}\n'),
]


@pytest.mark.parametrize(("name", "text"), IMPORT_FILES)
def test_an_import_file_is_opened_once_before_the_conversion(name, text, tmp_path):
    """Finding format and task opens a file once, then drops its lines."""
    (tmp_path / name).write_text(text)
    with opened() as paths:
        source, _ = open_source(tmp_path / name, ConvertOptions())
    assert source.detection is not None
    assert source.detection.rows
    assert paths.count(str(tmp_path / name)) == 1
    assert all(file.lines is None and file.listing is None for file in source.files)


def test_a_coco_document_is_parsed_once_before_the_conversion(tmp_path):
    """It is opened for its first bytes, and to be parsed; its folder is listed once."""
    (tmp_path / "a.jpg").write_bytes(b"")
    (tmp_path / "coco.json").write_text(coco(image(1, "a.jpg")))
    with opened("os.scandir") as listed, opened() as paths:
        source, options = open_source(tmp_path, ConvertOptions())
    assert (options.format, len(source.files), listed.count(f"{tmp_path}/")) == ("coco", 1, 1)
    assert source.detection is not None
    assert source.detection.rows
    assert paths.count(str(tmp_path / "coco.json")) == 2
