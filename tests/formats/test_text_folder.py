"""A folder of texts by label, as in Stanford's aclImdb."""

import pytest

import recordgen
from recordgen.errors import RecordgenError
from tests.conftest import stored_examples
from tests.formats.sources import Reading, write_files

IMDB = {
    "train/pos/1_7.txt": "Good, and cheap.",
    "train/pos/2_9.txt": "A film that I would see again.",
    "train/neg/1_2.txt": "Bad, and dear.",
    "train/unsup/1_0.txt": "Nobody has rated this one.",
    "test/pos/1_8.txt": "Very good.",
    "test/neg/1_1.txt": "Very bad.",
    "train/urls_pos.txt": "http://www.imdb.com/title/tt0453418/usercomments",
    "train/labeledBow.feat": "9 0:9 1:1",
    "imdb.vocab": "the",
    "imdbEr.txt": "0.0490972013402",
    "README": "Large Movie Review Dataset v1.0",
}


def read(folder, files):
    """Return how a folder is read: what was detected, its rows and rejects."""
    found = Reading(write_files(folder, files))
    labels = {row.uri: (row.split, row.annotation) for row in found.rows}
    return found.detection, labels, found.codes


def said(label):
    return f'{{"said": ["{label}"]}}'


def test_aclimdb_needs_no_option(tmp_path):
    """Splits and labels are the folders; other files are counted; unsup has no labels."""
    detection, labels, rejects = read(tmp_path, IMDB)
    decided = (detection.options.task, detection.options.format)
    assert decided == ("text_classification", "text_folder")
    assert labels == {
        "test/neg/1_1.txt": ("test", said("neg")),
        "test/pos/1_8.txt": ("test", said("pos")),
        "train/neg/1_2.txt": ("train", said("neg")),
        "train/pos/1_7.txt": ("train", said("pos")),
        "train/pos/2_9.txt": ("train", said("pos")),
        "train/unsup/1_0.txt": ("train", None),
    }
    assert rejects == []
    columns = dict(detection.columns)
    assert columns == {"train": "split train", "test": "split test", "train/unsup": "no label"}


def test_the_option_is_the_encoding_of_the_texts(tmp_path):
    """A text of another encoding is a reject that names the option, and no character is lost."""
    words = {"sport": ["Voilà", "été"], "tech": ["où", "Ω"]}
    files = {
        f"{kind}/{at}.txt": word.encode("utf-8" if word == "Ω" else "cp1252")
        for kind, texts in words.items()
        for at, word in enumerate(texts)
    }
    source = write_files(tmp_path / "in", files)
    options = {"max_reject_fraction": 1, "split": "100,0,0", "lint": "-ALL"}
    plain = recordgen.convert(source, tmp_path / "plain", **options)
    assert {item.code for item in plain.rejects} == {"bad_encoding"}
    assert all("--encoding" in item.message for item in plain.rejects)
    recordgen.convert(source, tmp_path / "out", encoding="cp1252", **options)
    texts = {values["text"][0].decode() for _, values in stored_examples(tmp_path / "out")}
    assert texts == {"Voilà", "été", "où", "Î©"}


# files, labels
TEXT_FOLDERS = [
    ({"sport/1.txt": "Goal!", "tech/1.txt": "A chip."}, {"sport", "tech"}),
    ({"bbc/sport/1.txt": "Goal!", "bbc/tech/1.txt": "A chip."}, {"sport", "tech"}),
    ({"README.TXT": "x", "sport/1.TXT": "Goal!", "tech/1.txt": "A chip."}, {"sport", "tech"}),
]


@pytest.mark.parametrize(("files", "labels"), TEXT_FOLDERS)
def test_folders_without_splits(files, labels, tmp_path):
    """BBC News has a folder for each class, and its splits are assigned."""
    _, rows, _ = read(tmp_path, files)
    assert {split for split, _ in rows.values()} == {None}
    assert {annotation for _, annotation in rows.values()} == set(map(said, labels))


# files of a folder that is none of texts by label
OTHERS = {
    "YOLO's labels": {"a/1.txt": "0 0.5 0.5 0.2 0.2\n", "b/2.txt": "1 0.5 0.5 0.2 0.2\n"},
    "one class": {"pos/1.txt": "Good."},
    "an import file": {"a/1.txt": "x", "b/1.txt": "y", "labels.csv": "a/1.txt,q"},
    "captions of images": dict.fromkeys(("a/1.jpg", "a/1.txt", "b/1.jpg", "b/1.txt"), "x"),
    "a folder in a class": {"a/1.txt": "x", "b/1.txt": "y", "b/more/2.txt": "z", "a/2.txt": "x"},
    "a split beside a class": {"train/a/1.txt": "x", "train/b/1.txt": "y", "c/1.txt": "z"},
}


@pytest.mark.parametrize("files", OTHERS.values(), ids=OTHERS)
def test_other_folders_are_no_texts_by_label(files, tmp_path):
    """Nothing is taken for a class that may be something else."""
    with pytest.raises(RecordgenError):
        read(tmp_path, files)
