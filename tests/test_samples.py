"""The sample photos: the same for everybody, and nothing is wrong with them."""

import numpy as np
import pytest

import recordgen
from recordgen.errors import UsageError
from recordgen.samples import main, photo, write_photos
from tests.conftest import tree_bytes


def test_photos_are_the_same_each_time(tmp_path):
    """The command writes them again over themselves, with the same bytes."""
    folder = tmp_path / "new" / "photos"
    assert main([str(folder)]) == 0
    first = tree_bytes(folder)
    assert len(first) == 120
    assert main([str(folder)]) == 0
    assert tree_bytes(folder) == first
    assert not np.array_equal(np.asarray(photo(0)), np.asarray(photo(2)))


def test_nothing_is_wrong_with_them(tmp_path):
    """A conversion has no rejects, no findings and no warnings."""
    write_photos(tmp_path / "photos")
    result = recordgen.convert(tmp_path / "photos", tmp_path / "out")
    assert result.dataset.labels == ("daisy", "rose")
    counts = {name: split.examples for name, split in result.dataset.splits.items()}
    assert counts == {"train": 97, "eval": 10, "test": 13}
    assert (result.rejects, result.dataset.lint, result.dataset.warnings) == ((), {}, ())


@pytest.mark.parametrize("name", ["photos/mine.jpg", "photos", "photos/daisy/mine/000.jpg"])
def test_other_files_stay_alone(name, tmp_path, capsys):
    """A folder with other files, or a file, is refused before anything is written."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"mine")
    before = tree_bytes(tmp_path)
    with pytest.raises(UsageError, match=str(tmp_path / "photos")):
        write_photos(tmp_path / "photos")
    assert main([str(tmp_path / "photos")]) == 2
    assert str(tmp_path / "photos") in capsys.readouterr().err
    assert tree_bytes(tmp_path) == before
