"""Listings of the files beside which a format is looked for."""

import tracemalloc

from recordgen.formats.listing import HEAD_BYTES, Listing


def test_heads_of_many_files_are_not_kept(tmp_path):
    """A folder may have a document for each of 100,000 images."""
    for number in range(300):
        (tmp_path / f"{number}.json").write_bytes(bytes(HEAD_BYTES))
    listing = Listing(f"{tmp_path}/")
    tracemalloc.start()
    for name in listing.names:
        listing.head(name)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * HEAD_BYTES


def test_a_path_of_many_folders_is_no_image(make_pictures, tmp_path):
    """Each leading folder is tried: the time of a path of any depth would be its square."""
    make_pictures("sub/a.png")
    listing = Listing(f"{tmp_path}/in/")
    assert listing.image_at(f"{'x/' * 90}sub/a.png", "", "sub/") == "sub/a.png"
    assert not listing.image_at(f"{'x/' * 200}sub/a.png", "", "sub/")
