"""A format that another package installs is a format like Recordgen's own."""

import json
from collections import Counter

import numpy as np
import pytest
from PIL import Image

import recordgen
from recordgen.errors import SourceError, UsageError
from recordgen.formats.format import Format, check_declaration
from recordgen.options import FORMAT_CHOICES
from recordgen.registry import FORMATS, OWN_FORMATS
from tests.conftest import found, stored_examples, write_file

pytestmark = pytest.mark.usefixtures("albums")


def album(folder, *pages):
    """Write an album of two classes beside images, and return it."""
    (folder / "digits").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in images(0, 14):
        Image.fromarray(rng.integers(0, 256, (24, 24, 3), np.uint8)).save(folder / name)
    lines = [line for page, names in pages for line in (f"page: {page}", *names)]
    path = write_file(folder / "digits.album", "\n".join(["album: two, one", *lines]) + "\n")
    return path


def images(start, end):
    """Return the names of some images."""
    return [f"digits/{number:04}.png" for number in range(start, end)]


PAGES = (
    ("one, train", images(0, 5)),
    ("two, train", images(5, 10)),
    ("one, eval", images(10, 12)),
    ("two, eval", images(12, 14)),
)


def labels(output):
    """Return the number of examples by label and its number."""
    return Counter(
        (example["image/class/text"][0].decode(), example["image/class/label"][0])
        for _, example in stored_examples(output)
    )


def test_recordgens_own_formats_are_plug_ins_too():
    """They are in the same registry, and complete."""
    assert list(FORMATS) == [*OWN_FORMATS, "album"]
    assert "album" in FORMAT_CHOICES
    for name in FORMATS:
        check_declaration(name, FORMATS[name])


def test_a_folder_goes_all_the_way(tmp_path, out, stdout_of, capsys):
    """Detected, previewed, converted, shown in the report, compared, and read."""
    path = album(tmp_path / "in", *PAGES)
    capsys.readouterr()
    shown = stdout_of("convert", path.parent, out)
    assert "14 read, 14 examples" in shown
    assert "image_classification (digits.album declares 2 classes)" in shown
    assert "train | digits/0000.png | 'one'" in shown

    dataset = recordgen.read_dataset(str(out))
    assert dataset.labels == ("two", "one")  # in the order of the album
    examples = {split: each.examples for split, each in dataset.splits.items()}
    assert examples == {"train": 10, "eval": 4}
    assert labels(out) == {("one", 1): 7, ("two", 0): 7}
    assert "digits/0000.png" in (out / "report.html").read_text(encoding="utf-8")

    recordgen.convert(str(album(tmp_path / "in2", *PAGES[:3])), tmp_path / "out2")
    assert "2" in stdout_of("diff", out, tmp_path / "out2", code=1)


def test_the_document_alone_is_enough(tmp_path):
    """Whether the file or its folder is given, rows and bytes are the same."""
    path = album(tmp_path / "in", *PAGES)
    digests = []
    for number, source in enumerate((path, path.parent)):
        dataset = recordgen.convert(str(source), tmp_path / str(number)).dataset
        digests.append([shard.digest for each in dataset.splits.values() for shard in each.shards])
    assert digests[0] == digests[1]


def test_problems_are_rejects_with_file_and_line(tmp_path):
    """An image that is missing, a class that is not declared, a split that does not exist."""
    path = album(
        tmp_path / "in",
        ("one, train", [*images(0, 4), "digits/none.png"]),
        ("three, train", images(4, 5)),
        ("one, trian", images(5, 6)),
    )
    result = recordgen.convert(str(path), tmp_path / "out", max_reject_fraction=1)
    assert [(item.source, item.line, item.code, item.uri) for item in result.rejects] == [
        (str(path), 7, "missing_file", "digits/none.png"),
        (str(path), 9, "bad_annotation", "digits/0004.png"),
        (str(path), 11, "unknown_ml_use", "digits/0005.png"),
    ]
    lines = (tmp_path / "out/rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["line"] for line in lines] == [7, 9, 11]


def test_a_document_in_a_folder_of_its_own_is_named(tmp_path):
    """Rows are placed by the path from the root, and messages name the document."""
    path = album(tmp_path / "in", ("one, train", [*images(0, 4), "digits/none.png"]))
    (tmp_path / "in/albums").mkdir()
    path.rename(tmp_path / "in/albums/a.album")
    result = recordgen.convert(str(tmp_path / "in"), tmp_path / "out", max_reject_fraction=1)
    assert result.dataset.examples == 4
    [reject] = result.rejects
    assert reject.source == f"{tmp_path}/in/"
    assert reject.message.startswith("albums/a.album: ")


# options, error
UNFIT_OPTIONS = [
    ({"task": "object_detection"}, UsageError),
    ({"format": "folder"}, SourceError),
    ({"columns": "path=1,label=2"}, UsageError),
    ({"columns": "header=yes"}, UsageError),
]


@pytest.mark.parametrize(("options", "error"), UNFIT_OPTIONS)
def test_options_that_do_not_fit(options, error, tmp_path):
    """Another task, another format, columns and headers are refused before anything is written."""
    path = album(tmp_path / "in", *PAGES)
    with pytest.raises(error):
        recordgen.convert(str(path), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_two_formats_in_one_folder_stop(tmp_path):
    """Nothing is guessed; the message lists both, and --format decides."""
    path, site = album(tmp_path / "in", *PAGES), tmp_path / "twin-1.dist-info"
    site.mkdir()
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: twin\nVersion: 1\n")
    (site / "entry_points.txt").write_text("[recordgen.formats]\ntwin = twin:Twin\n")
    twin = "from albums.format import Album\nclass Twin(Album): name = 'twin'\n"
    (tmp_path / "twin.py").write_text(twin)
    with (
        found(tmp_path, FORMATS),
        pytest.raises(UsageError, match=r"(?s)album: .*twin: .*='album'"),
    ):
        recordgen.plan(str(path.parent))


@pytest.mark.parametrize("name", ["album", "folder", "text_folder", "mask_folders"])
def test_no_evidence_of_the_given_format(name, tmp_path):
    """The message says what the format expects, which is no file of rows, or a folder."""
    (tmp_path / "a.csv").write_text("1.jpg,cat\n")
    with pytest.raises(SourceError, match=rf"a\.csv.*{name}"):
        recordgen.plan(str(tmp_path / "a.csv"), format=name)


# the object of an entry point, what the message names
INCOMPLETE = [
    (3, r"\.Format .*3"),
    (type("Wrong", (Format,), {"name": "other"}), "'other'.*'mine'|'mine'.*'other'"),
    (type("Part", (Format,), {"name": "mine"}), "accepts, detect, rows"),
]


@pytest.mark.parametrize(("found", "words"), INCOMPLETE)
def test_an_incomplete_declaration_names_what_is_wrong(found, words):
    """A declared format says which part of it is missing or wrong."""
    with pytest.raises(TypeError, match=words):
        check_declaration("mine", found)
