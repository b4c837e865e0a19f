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
from tests.servers import listed_bucket, serving


@pytest.fixture
def data(tmp_path, write_import):
    rows = [("TRAIN", f"i/{n}.png", "a") for n in range(5)]
    write_import(tmp_path / "a.csv", rows)
    return tmp_path


def fingerprint(folder, *names):
    return image_fingerprint(ImportFile(str(folder / name)) for name in names or ("a.csv",))


def replace_later(path, data):
    """Replace a file's content, without waiting for the next second."""
    before = path.stat().st_mtime_ns
    path.write_bytes(data)
    os.utime(path, ns=(before + 1000, before + 1000))


def test_same_files_same_fingerprint(data):
    assert fingerprint(data) == fingerprint(data)
    assert fingerprint(data).startswith("images:5,sha256:")


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
    before = fingerprint(data)
    CHANGES[change](data)
    assert fingerprint(data) != before
    if (data / "away").exists():
        (data / "away").rename(data / "i/3.png")
        assert fingerprint(data) == before


def test_an_image_found_by_name_counts(data):
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
    before = fingerprint(data)
    (data / "i/other.png").write_bytes(b"x")
    assert fingerprint(data) == before


def test_a_missing_import_file_counts(data):
    assert fingerprint(data, "b.csv").startswith("images:0,")
    assert fingerprint(data, "b.csv") != fingerprint(data, "c.csv")


def test_the_last_image_of_several_windows_counts(tmp_path):
    rows = [f"TRAIN,{n}.png,a\n" for n in range(5000)]
    (tmp_path / "a.csv").write_text("".join(rows))
    before = fingerprint(tmp_path)
    assert before.startswith("images:5000,")
    (tmp_path / "4999.png").write_bytes(b"x")
    assert fingerprint(tmp_path) != before


def test_many_images_of_a_folder_take_few_requests(tmp_path, monkeypatch):
    names = [f"a/{n:05}.jpg" for n in range(2000)]
    source = tmp_path / "labels.csv"
    source.write_text("".join(f"TRAIN,gs://bucket/{name},x\n" for name in reversed(names)))
    with listed_bucket(names, monkeypatch) as asked:
        found = image_fingerprint([ImportFile(str(source))], ConvertOptions(allow=("gs",)))
    assert found.startswith("images:2000,")
    assert len(asked) == 2


def test_each_reason_for_no_version_has_its_own_word(tmp_path):
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


@pytest.mark.parametrize(
    ("options", "files", "changed", "text"),
    [
        # options; the import file, and files next to it; the file that changes, and its new content
        (
            dict(task="text_entities"),
            {"sentences.txt": "Anna left\n", "labels.txt": "B-person O\n"},
            *("labels.txt", "B-animal O\n"),
        ),
        (
            dict(task="video_classification"),  # videos are not looked up
            {
                "top.csv": "TRAIN,list.csv\nTEST,gs://no-such-bucket/1.mp4,x\n",
                "list.csv": "1.mp4,x,0,1\n",
            },
            *("list.csv", "1.mp4,y,0,1\n"),
        ),
        pytest.param(
            dict(task="tabular", schema="schema.pbtxt"),
            {"a.csv": "a\n1\n", "schema.pbtxt": 'feature {name: "a" type: INT}'},
            *("schema.pbtxt", 'feature {name: "a" type: FLOAT}'),
            marks=pytest.mark.skipif(
                find_spec("tensorflow_metadata") is None, reason="needs TensorFlow Metadata"
            ),
        ),
        (
            dict(task="tabular", vocabulary="labels.txt"),
            {"a.csv": "a\n1\n", "labels.txt": "a\n"},
            *("labels.txt", "b\n"),
        ),
    ],
)
def test_files_that_describe_rows_count(tmp_path, monkeypatch, options, files, changed, text):
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        Path(name).write_text(content)
    source, decoded = [ImportFile(next(iter(files)))], ConvertOptions(**options)
    before = image_fingerprint(source, decoded)
    assert before.startswith("images:0,")
    assert image_fingerprint(source, decoded) == before
    replace_later(Path(changed), text.encode())
    assert image_fingerprint(source, decoded) != before


def test_every_image_of_a_row_counts(data):
    (data / "pairs.csv").write_text("i/0.png,i/1.png\ni/2.png,i/3.png\n")
    options = ConvertOptions(schema='{"a": "image", "b": "image"}')
    files = [ImportFile(str(data / "pairs.csv"))]
    before = image_fingerprint(files, options)
    assert before.startswith("images:4,")
    backwards(data / "i/3.png")
    assert image_fingerprint(files, options) != before


# the files of a folder of images, what is passed of it, the file that changes
FOREIGN = [
    ({"data.yaml": "train: .\nnames: [a, b]", "a.txt": "0 .5 .5 1 1"}, "", "a.txt"),
    ({"data.yaml": "train: .\nnames: [a, b]", "a.txt": "0 .5 .5 1 1"}, "data.yaml", "a.txt"),
    ({"data.yaml": "train: .\nnames: [a, b]", "a.txt": "0 .5 .5 1 1"}, "", "data.yaml"),
    (
        {
            "x.json": '{"images": [{"id": 1, "file_name": "a.jpg", "width": 9, "height": 9}], '
            '"annotations": [{"image_id": 1, "category_id": 0, "bbox": [0, 0, 5, 5]}], '
            '"categories": [{"id": 0, "name": "a"}]}'
        },
        "",
        "x.json",
    ),
    (
        {
            "a.xml": "<annotation><size><width>9</width><height>9</height></size><object><name>a"
            "</name><bndbox><xmin>0</xmin><ymin>0</ymin><xmax>5</xmax><ymax>5</ymax></bndbox>"
            "</object></annotation>"
        },
        "",
        "a.xml",
    ),
]


@pytest.mark.parametrize(("files", "source", "changed"), FOREIGN)
def test_files_of_labels_of_other_tools_count(files, source, changed, tmp_path):
    (tmp_path / "a.jpg").touch()
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def of_source():
        return image_fingerprint([ImportFile(f"{tmp_path}/{source}")])

    before = of_source()
    assert before.startswith("images:1,")
    assert of_source() == before
    path = tmp_path / changed
    replace_later(path, path.read_bytes().replace(b"5", b"4").replace(b"[a, b]", b"[b, a]"))
    assert of_source() != before
