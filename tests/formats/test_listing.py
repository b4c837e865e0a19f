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
