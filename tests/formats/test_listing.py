"""Listings of the files beside which a format is looked for."""

import os

import pytest

from recordgen.errors import SourceError
from recordgen.formats.import_file import find_import_files
from recordgen.formats.listing import HEAD_BYTES, Listing, list_tree
from tests.conftest import peak_of


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
