"""Listings of files beside which a format is looked for: links, pipes, what is read once."""

import os

import pytest

import recordgen
from recordgen.conversion.api import convert_files
from recordgen.errors import SourceError
from recordgen.formats.import_file import find_import_files
from recordgen.formats.listing import HEAD_BYTES, Listing, list_tree
from recordgen.formats.source import open_source
from recordgen.kubeflow.convert import runner_factory
from recordgen.options import ConvertOptions
from tests.conftest import peak_of, write_file
from tests.formats.sources import write_files
from tests.formats.test_coco import coco, image
from tests.formats.test_pascal_voc import CAT
from tests.opened import opened


def test_heads_of_many_files_are_not_kept(tmp_path):
    """A folder may have a document for each of 100,000 images."""
    for number in range(300):
        (tmp_path / f"{number}.json").write_bytes(bytes(HEAD_BYTES))
    listing = Listing(f"{tmp_path}/")
    _, peak = peak_of(lambda: [bool(listing.head(name)) for name in listing.names])
    assert peak < 100 * HEAD_BYTES


def test_a_path_of_many_folders_is_no_image(make_pictures, tmp_path):
    """Each leading folder is tried: the time of a path of any depth would be its square."""
    make_pictures("sub/a.png")
    listing = Listing(f"{tmp_path}/in/")
    assert listing.image_at(f"{'x/' * 90}sub/a.png", "", "sub/") == "sub/a.png"
    for count in (200, 1_000_000):
        assert not listing.image_at(f"{'x/' * count}sub/a.png", "", "sub/")


@pytest.mark.parametrize("depth", [101, 300])
def test_folders_that_are_too_deep_are_named(depth, tmp_path):
    """A folder below more folders than a limit is an error that names it."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("n", dir_fd=here)
        inner = os.open("n", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    with pytest.raises(SourceError, match=f"{tmp_path}/n/n/.*folders"):
        list_tree(f"{tmp_path}/")


def test_a_source_whose_path_is_not_utf8(tmp_path):
    """No file of a dataset can name such a source, so it is refused before anything is read."""
    folder = os.fsencode(tmp_path) + b"/f\xff"
    os.mkdir(folder)
    with open(folder + b"/a.csv", "wb") as file:
        file.write(b"1.png,cat\n")
    with pytest.raises(SourceError):
        find_import_files(os.fsdecode(folder) + "/a.csv")


# --- links, pipes and loops -----------------------------------------------------------------------

YOLO = {"data.yaml": "train: images\nnames: [cat]\n", "labels/b.txt": "0 0.5 0.5 1 1\n"}
VOC = {"images/b.xml": CAT}


# the link, the other files, the source
LINKS = [
    ("labels/a.txt", YOLO, ""),
    ("labels/a.txt", YOLO, "data.yaml"),
    ("images/a.xml", VOC, ""),
    ("classes.txt", {"labels/b.txt": "0 0.5 0.5 1 1\n"}, ""),
    ("a.json", {}, ""),
    ("metadata.parquet", {}, ""),
]


@pytest.mark.parametrize(("link", "files", "source"), LINKS)
def test_links_out_of_the_folder_in_a_step(link, files, source, tmp_path, make_pictures):
    """A pipeline step must not show lines of files that the author of the folder cannot read."""
    make_pictures("images/a.jpg", "images/b.jpg")
    root = write_files(tmp_path / "in", files)
    secret = write_file(tmp_path / "secret", "TOPSECRET\n")
    (root / link).symlink_to(secret)
    options = ConvertOptions(confined=True, max_reject_fraction=1)
    found = find_import_files(str(root / source))
    with pytest.raises(SourceError, match="link") as caught:
        convert_files(found, str(tmp_path / "out"), options, new_runner=runner_factory([]))
    assert "TOPSECRET" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.json", "labels/a.txt"])
def test_a_run_does_not_wait_for_a_pipe(name, tmp_path, make_pictures):
    """A named pipe among the files is refused, not waited for."""
    make_pictures("images/a.jpg", "images/b.jpg")
    root = write_files(tmp_path / "in", YOLO)
    os.mkfifo(root / name)
    with pytest.raises(SourceError, match=name):
        recordgen.plan(str(root))


def test_links_to_each_other(tmp_path, make_pictures):
    """Two folders with two links to each other have 2**40 paths."""
    make_pictures("images/a.jpg", "images/b.jpg")
    root = write_files(tmp_path / "in", YOLO)
    for one, other in ("xy", "yx"):
        (root / one).mkdir()
        for number in range(2):
            (root / one / f"{other}{number}").symlink_to(f"../{other}")
    with pytest.raises(SourceError, match=f"{root}/[xy]"):
        recordgen.plan(str(root))


# --- what is read once ----------------------------------------------------------------------------

# name, text, and how often it is opened: a large file keeps no lines for its rows
IMPORT_FILES = [
    ("a.csv", "TRAIN,a.jpg,cat\n", 1),
    ("a.csv", "image_uri,label\na.jpg,cat\n", 1),
    ("a.csv", "a.mp4,run,0,1\n", 1),
    ("a.csv", "a.jpg\n" * 12_000, 2),  # a few bytes, of which detection reads the first lines
    ("a.csv", "TRAIN,a.jpg,cat\n" * 6_000, 2),
    ("a.jsonl", '{"imageGcsUri": "a.jpg"}\n', 1),
]


@pytest.mark.parametrize(("name", "text", "opens"), IMPORT_FILES)
def test_an_import_file_is_opened_once_before_the_conversion(name, text, opens, tmp_path):
    """Finding format and task opens a file once; a small one keeps its lines for its rows."""
    (tmp_path / name).write_text(text)
    with opened() as paths:
        source, _ = open_source(tmp_path / name, ConvertOptions())
    assert source.detection is not None
    assert source.detection.rows
    assert paths.count(str(tmp_path / name)) == opens
    assert [(file.lines is None, file.listing) for file in source.files] == [(opens > 1, None)]


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
