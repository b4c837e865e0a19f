"""Files of labels that are links, pipes or loops."""

import os

import pytest

import recordgen
from recordgen.conversion.api import convert_files
from recordgen.errors import SourceError
from recordgen.formats.import_file import find_import_files
from recordgen.kubeflow.convert import runner_factory
from recordgen.options import ConvertOptions
from tests.formats.sources import write_files
from tests.formats.test_pascal_voc import CAT

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
    secret = tmp_path / "secret"
    secret.write_text("TOPSECRET\n")
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
