import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from aiohttp import web

from recordgen.conversion.fingerprint import image_fingerprint, version_or_missing
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions
from recordgen.storage import RequestContext
from recordgen.storage.access import Access, RowUrlPolicy
from tests.formats.test_coco import box, coco, image
from tests.formats.test_pascal_voc import document as voc
from tests.servers import listed_bucket, serving


@pytest.fixture
def data(tmp_path, write_import):
    write_import(tmp_path / "a.csv", [("TRAIN", f"i/{n}.png", "a") for n in range(5)])
    return tmp_path


def fingerprint(folder, *names):
    return image_fingerprint(ImportFile(str(folder / name)) for name in names or ("a.csv",))


def replace_later(path, data):
    """Replace a file's content, without waiting for the next second."""
    before = path.stat().st_mtime_ns
    path.write_bytes(data)
    os.utime(path, ns=(before + 1000, before + 1000))


def backwards(path):
    """Replace a file by another of the same size."""
    replace_later(path, bytes(reversed(path.read_bytes())))


CHANGES = {
    "an image of the same size": lambda data: backwards(data / "i/3.png"),
    "an image that is missing": lambda data: (data / "i/3.png").rename(data / "away"),
    "a label, within a second": lambda data: replace_later(
        data / "a.csv", (data / "a.csv").read_bytes()[:-2] + b"b\n"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_counts(change, data):
    """Each change of the data changes the fingerprint; undoing a move restores it."""
    before = fingerprint(data)
    CHANGES[change](data)
    assert fingerprint(data) != before
    if (data / "away").exists():
        (data / "away").rename(data / "i/3.png")
        assert fingerprint(data) == before


def test_an_image_found_by_name_counts(data):
    """The file behind a name without a suffix is in the fingerprint."""
    (data / "b.csv").write_text("image_id,label\n0,a\n1,a\n")
    options = ConvertOptions(image_root=str(data / "i"), confined=True)

    def found():
        return image_fingerprint([ImportFile(str(data / "b.csv"))], options)

    before = found()
    assert before.startswith("images:2,")
    replace_later(data / "i/1.png", b"other")
    assert found() != before
    (data / "i/1.jpg").touch()  # now the row may mean either
    assert found().startswith("images:1,")


def test_unnamed_files_do_not_count(data):
    """Only files that rows name are in the fingerprint, which has their number."""
    before = fingerprint(data)
    assert before.startswith("images:5,sha256:")
    (data / "i/other.png").write_bytes(b"x")
    assert fingerprint(data) == before


def test_a_missing_import_file_counts(data):
    """It has a fingerprint of its own name."""
    assert fingerprint(data, "b.csv").startswith("images:0,")
    assert fingerprint(data, "b.csv") != fingerprint(data, "c.csv")


def test_the_last_image_of_several_windows_counts(tmp_path):
    """No image behind the first thousands is left out."""
    rows = [f"TRAIN,{n}.png,a\n" for n in range(5000)]
    (tmp_path / "a.csv").write_text("".join(rows))
    before = fingerprint(tmp_path)
    assert before.startswith("images:5000,")
    (tmp_path / "4999.png").write_bytes(b"x")
    assert fingerprint(tmp_path) != before


def test_many_images_of_a_folder_take_few_requests(tmp_path, monkeypatch):
    """Two thousand images are two pages of a listing."""
    names = [f"a/{n:05}.jpg" for n in range(2000)]
    source = tmp_path / "labels.csv"
    source.write_text("".join(f"TRAIN,gs://bucket/{name},x\n" for name in reversed(names)))
    with listed_bucket(names, monkeypatch) as asked:
        found = image_fingerprint([ImportFile(str(source))], ConvertOptions(allow=("gs",)))
    assert found.startswith("images:2000,")
    assert len(asked) == 2


def test_each_reason_for_no_version_has_its_own_word(tmp_path):
    """A missing, forbidden or unknown file cannot be taken for a version."""
    (tmp_path / "file").write_bytes(b"x")
    assert version_or_missing(str(tmp_path / "file/below")) == "missing"
    assert version_or_missing(str(tmp_path / "nothing")) == "missing"
    assert version_or_missing(str(tmp_path)) == "folder"
    assert version_or_missing("nobody://knows/this") == "unknown"

    async def answer(request):
        return web.Response(status=403 if request.path == "/forbidden.jpg" else 404)

    with serving(answer) as url:
        open_to_us = RequestContext(RowUrlPolicy(Access(prefixes=(url,)), "/a.csv"))
        assert version_or_missing(f"{url}/forbidden.jpg", open_to_us) == "forbidden"
        assert version_or_missing(f"{url}/missing.jpg", open_to_us) == "missing"
        closed = RequestContext(RowUrlPolicy(Access(), "/a.csv"))
        assert version_or_missing(f"{url}/forbidden.jpg", closed) == "not allowed"


def test_every_image_of_a_row_counts(data):
    """Rows of several images change with each of them."""
    (data / "pairs.csv").write_text("i/0.png,i/1.png\ni/2.png,i/3.png\n")
    options = ConvertOptions(schema='{"a": "image", "b": "image"}')
    files = [ImportFile(str(data / "pairs.csv"))]
    before = image_fingerprint(files, options)
    assert before.startswith("images:4,")
    backwards(data / "i/3.png")
    assert image_fingerprint(files, options) != before


YOLO = {"data.yaml": "train: .\nnames: [a, b]", "a.txt": "0 .5 .5 1 1"}
COCO = {"x.json": coco(image(1, "a.jpg"), boxes=[box(1, 2, 0, 0, 5, 5)])}
PASCAL_VOC = {"a.xml": voc("", ("a", "0 0 5 5"))}
SENTENCES = {"sentences.txt": "Anna left\n", "labels.txt": "B-person O\n"}
VIDEOS = {
    "top.csv": "TRAIN,list.csv\nTEST,gs://no-such-bucket/1.mp4,x\n",  # videos are not looked up
    "list.csv": "1.mp4,x,0,1\n",
}
TYPED = {"a.csv": "a\n1\n", "schema.pbtxt": 'feature {name: "a" type: INT}'}
NAMED = {"a.csv": "a\n1\n", "labels.txt": "a\n"}
needs_metadata = pytest.mark.skipif(
    find_spec("tensorflow_metadata") is None, reason="needs TensorFlow Metadata"
)

# files; the one that is given, or their folder; options; the file that changes, from what to what
DESCRIBING = [
    (SENTENCES, "sentences.txt", {"task": "text_entities"}, "labels.txt", "person", "animal"),
    (VIDEOS, "top.csv", {"task": "video_classification"}, "list.csv", ",x", ",y"),
    pytest.param(
        *(TYPED, "a.csv", {"task": "tabular", "schema": "schema.pbtxt"}),
        *("schema.pbtxt", "INT", "FLOAT"),
        marks=needs_metadata,
    ),
    (NAMED, "a.csv", {"task": "tabular", "vocabulary": "labels.txt"}, "labels.txt", "a", "b"),
    (YOLO, "", {}, "a.txt", "5", "4"),
    (YOLO, "data.yaml", {}, "a.txt", "5", "4"),
    (YOLO, "", {}, "data.yaml", "[a, b]", "[b, a]"),
    (COCO, "", {}, "x.json", "5", "4"),
    (PASCAL_VOC, "", {}, "a.xml", "5", "4"),
]


@pytest.mark.parametrize(("files", "source", "options", "changed", "old", "new"), DESCRIBING)
def test_files_that_describe_rows_count(
    files, source, options, changed, old, new, tmp_path, monkeypatch
):
    """Tags, lists, schemas, vocabularies and labels of other tools count as images do."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"a.jpg": "", **files}.items():
        Path(name).write_text(text)

    def found():
        return image_fingerprint([ImportFile(f"{tmp_path}/{source}")], ConvertOptions(**options))

    before = found()
    assert before.startswith("images:0," if options else "images:1,")
    assert found() == before
    replace_later(Path(changed), files[changed].replace(old, new).encode())
    assert found() != before
