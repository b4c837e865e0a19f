"""The same files in another place give the same bytes, however rows name them."""

import shutil
from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import recordgen
from recordgen import storage
from recordgen.errors import UsageError
from recordgen.tasks.video_classification.reading import to_addresses
from tests import golden
from tests.conftest import encoded, noise, tree_bytes
from tests.formats.sources import write_files

VIDEO = {"task": "video_classification"}

# import file, one of its lines, options
LINES = {
    "lists/images.csv": ("../images/{n}.jpg,{label}\n", {}),
    "images.jsonl": ('{{"imageGcsUri": "images/{n}.jpg"}}\n', {"labels": "none"}),
    "texts.csv": ("texts/{n}.txt,{label}\n", {"task": "text_classification"}),
    "lists/videos.csv": ("../videos/{n}.gif,{label},0,1\n", VIDEO),
    "two.csv": ("TRAIN,lists/videos.csv\n", VIDEO),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with files that name each other by relative paths."""
    root, labels = tmp_path_factory.mktemp("home"), [("cat", "dog")[n % 2] for n in range(12)]
    for n, label in enumerate(labels):
        image = encoded(noise(seed=n), "JPEG")
        text = f"The text of {label} {n}."
        write_files(root, {f"images/{n}.jpg": image, f"texts/{n}.txt": text})
    for name, (line, _) in LINES.items():
        rows = dict.fromkeys(line.format(n=n, label=label) for n, label in enumerate(labels))
        write_files(root, {name: "".join(rows)})
    return root


FAR = "far/away/" + "long" * 20
# With such small shards, a few more bytes in a record would change the cuts.
SMALL = {"shard_mb": 0.0002, "max_reject_fraction": 0}


@pytest.mark.parametrize("source", LINES)
def test_a_copy_elsewhere_gives_the_same_bytes(source, home, tmp_path):
    """The folder's name and depth do not affect records, order, or the cut of shards."""
    found = []
    for number, root in enumerate((home, shutil.copytree(home, tmp_path / FAR))):
        output = tmp_path / str(number)
        dataset = recordgen.convert(root / source, output, **SMALL, **LINES[source][1]).dataset
        shards = {name: data for name, data in tree_bytes(output).items() if "Split-" in name}
        assert all(str(root).encode() not in data for data in shards.values())
        found.append((dataset.digest, shards))
    assert found[0] == found[1]
    assert len(found[0][1]) > 2


@pytest.mark.parametrize("name", golden.SAMPLES)
def test_a_sample_elsewhere_gives_the_same_bytes(name, tmp_path):
    """So it is for every task."""
    run = partial(recordgen.convert, **SMALL, **golden.NEEDED.get(name, {}))
    here, there = (golden.digests(name, tmp_path / place, run) for place in ("here", FAR))
    assert here == there


@pytest.fixture
def weeks(home, tmp_path, monkeypatch):
    """Folders with import files of the same names and other images; the first is current."""
    for number, week in enumerate(("one", "two")):
        (tmp_path / week / "images").mkdir(parents=True)
        shutil.copy(home / f"images/{2 * number}.jpg", tmp_path / week / "images/1.jpg")
        (tmp_path / week / "a.csv").write_text("TRAIN,images/1.jpg,cat\n")
    monkeypatch.chdir(tmp_path / "one")
    recordgen.convert("a.csv", "../out")
    return tmp_path


def test_append_takes_no_relative_path_for_that_of_another_folder(weeks, monkeypatch):
    """The rows of another file would be taken for known ones."""
    monkeypatch.chdir(weeks / "two")
    for source in ("a.csv", "../one/a.csv"):
        with pytest.raises(UsageError, match=str(weeks / "one")):
            recordgen.convert(source, "../out", append=True)
        with pytest.raises(UsageError):
            recordgen.plan(source, append_to="../out")
        with pytest.raises(UsageError):
            recordgen.parts.plan(source, "../out", parts=2, append=True)
    added = recordgen.convert(weeks / "two/a.csv", "../out", append=True).dataset
    assert (added.examples, added.rows.existing) == (2, 0)


# The import file of the first run, and of one that appends, from another folder if it is whole.
SPELLINGS = [
    ("a.csv", "{root}/one/a.csv"),
    ("{root}/one/a.csv", "a.csv"),
    ("./a.csv", "../one/a.csv"),
    ("a.csv", "{root}/link/a.csv"),
    ("{root}/link/a.csv", "file://{root}/two/../one/a.csv"),
    ("images/", "{root}/one/images/"),
]


@pytest.mark.parametrize(("first", "second"), SPELLINGS)
def test_all_spellings_of_an_import_file_are_one(first, second, weeks, monkeypatch):
    """Its rows are known ones, and its rejects are listed once, however its path is written."""
    root = weeks
    (root / "link").symlink_to(root / "one")
    (root / "one/a.csv").write_text("TRAIN,images/1.jpg,cat\nTRAIN,none.jpg,cat\n")
    options = {"overwrite": True, "max_reject_fraction": 1.0}
    if first.endswith("/"):
        (root / "one/images/none.jpg").write_bytes(b"no image")
        options["layout"] = "{name}.{label}"
    before = recordgen.convert(first.format(root=root), "../out", **options)
    if "root" in second:
        monkeypatch.chdir("/")
    options = {**options, "overwrite": False, "append": True}
    after = recordgen.convert(second.format(root=root), root / "out", **options)
    assert after.dataset.digest == before.dataset.digest
    assert (after.dataset.rows.existing, len(after.rejects)) == (1, len(before.rejects))


def test_an_output_that_moved_alone_takes_relative_paths(weeks):
    """If import files are not where they were, the current folder is that of relative paths."""
    shutil.move(weeks / "out", weeks / "far/away/out")
    found = recordgen.convert("a.csv", weeks / "far/away/out", append=True).dataset
    assert (found.examples, found.rows.existing) == (1, 1)


# videos as an import file names them, their paths
VIDEOS = [
    ("a.csv", ["v/1.gif", "./v/1.gif", "{root}/v/1.gif"]),
    ("lists/a.csv", ["../v/1.gif", "../lists/../v/1.gif"]),
]


@pytest.mark.parametrize(("name", "uris"), VIDEOS)
def test_relative_videos_are_found_from_anywhere(name, uris, tmp_path, monkeypatch):
    """All spellings of a path are one video; readers return its address from any folder."""
    for folder in ("v", "lists"):
        (tmp_path / folder).mkdir()
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "v/1.gif")
    source = tmp_path / name
    source.write_text("".join(f"TRAIN,{uri},x\n" for uri in uris).format(root=tmp_path))
    monkeypatch.chdir(source.parent)
    dataset = recordgen.convert(source.name, tmp_path / "out", **VIDEO).dataset
    assert (dataset.examples, dataset.rows.duplicates) == (1, len(uris) - 1)
    monkeypatch.chdir("/")
    [(batch, _)] = recordgen.eval_dataset(tmp_path / "out", split="train")
    assert batch["uri"].numpy().tolist() == [str(tmp_path / "v/1.gif").encode()]


# uri, folder, address
ADDRESSES = [
    ("v/1.gif", "/d/lists", "/d/lists/v/1.gif"),
    ("../v/1.gif", "/d/lists", "/d/v/1.gif"),
    ("../../1.gif", "/d/lists", "/1.gif"),
    ("../v/1.gif", "gs://b/lists", "gs://b/v/1.gif"),
    ("1.gif", "gs://b", "gs://b/1.gif"),
    ("/x/1.gif", "/d", "/x/1.gif"),
    ("gs://c/1.gif", "/d", "gs://c/1.gif"),
    ("..a/1.gif", "/d", "/d/..a/1.gif"),
    ("\n/1.gif", "/d", "/d/\n/1.gif"),
    ("1.gif", "", "1.gif"),
]


@pytest.mark.parametrize(("uri", "folder", "address"), ADDRESSES)
def test_addresses(uri, folder, address):
    """A uri and a folder give the address, and the address gives back the uri."""
    found = to_addresses(tf.constant([uri, "/z"]), folder)
    assert found.numpy().tolist() == [address.encode(), b"/z"]
    if folder and uri != address:
        assert storage.from_folder(address, folder, outside=True) == uri


def test_what_has_no_relative_path():
    """Addresses outside the folder stay unless relative ones are requested; other storages stay."""
    assert storage.from_folder("/d/v/1.gif", "/d/lists", outside=False) == "/d/v/1.gif"
    for address in ("gs://b//v/1.gif", "gs://c/v/1.gif", "https://h/v/1.gif"):
        assert storage.from_folder(address, "gs://b", outside=True) == address
