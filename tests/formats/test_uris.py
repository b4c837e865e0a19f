"""Names of images in every format: secrets of URLs are in no output, and a path is no URL."""

import io
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordgen
from recordgen.cli import main
from tests.conftest import encoded, noise
from tests.formats.sources import json_lines
from tests.formats.test_label_studio import region, task
from tests.formats.test_tfrecord import framed
from tests.formats.test_webdataset import member
from tests.formats.written import WRITERS

URL = "https://me:SECa@127.0.0.1:1/p/1.png?token=SECb&X-Amz-Signature=SECc"
# The same in odd spellings.
ODD_URLS = (
    *("//me:SECa@127.0.0.1:1/p/1.png", r"https:\\me:SECa@127.0.0.1:1\p\2.png"),
    *(r"\\me:SECa@127.0.0.1:1\p\3.png", "https%3A%2F%2Fme%3ASECa%40127.0.0.1%3A1%2F4.png"),
    *("HTTPS://127.0.0.1:1/5.png;JSESSIONID=SECb", "https://127.0.0.1:1/6%3Ftoken%3DSECb.png"),
    *("https://127.0.0.1:1/7.png?x-AMZ-credential=SECb&X-AMZ-SIGNATURE=SECc",),
    *("https://127.0.0.1:1/8.png?GOOGLEACCESSID=SECb&Signature=SECc",),
    *("https://127.0.0.1:1/9.png?SV=1&SIG=SECc", "https://127.0.0.1:1/10.png&apikey=SECb"),
)
SOUND = "g.png"

# Letters that separate the parts of a URL, and codes for letters, in names of files.
NAMES = (
    *("q?1.png", "w??v=1#z.png", "a#b.png", "c%20d.png", "e%2Ff.png", "g;h.png", "i@j.png"),
    *("k:l.png", "o&p=q.png", "r?token=1.png", "r?token=2.png", "[s]*.png", "me:pw@h.png"),
)

STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def image(number):
    return encoded(noise(40, 20, number), "PNG")


def classified(name):
    return {"imageGcsUri": name, "classificationAnnotation": {"displayName": "cat"}}


def cut_line(name):
    return json_lines(classified(name)).replace("/", "\\/")[:-2] + "\n"


def mask(name):
    colours = [{"color": {"red": 1.0}, "displayName": "cat"}]
    annotation = {"maskGcsUri": name, "annotationSpecColors": colours}
    return {"imageGcsUri": SOUND, "segmentationAnnotation": annotation}


def written(name):
    """Return a function that returns the documents of a format of boxes."""

    def documents(names):
        with TemporaryDirectory() as root:
            folder = Path(root, "in")
            folder.mkdir()
            WRITERS[name](folder, names)
            return {path.name: path.read_bytes() for path in folder.iterdir()}

    return documents


def tfrecord(names):
    said = {"image/class/text": b"cat"}
    named = [{"image/filename": it, "image/source_id": it, **said} for it in map(str.encode, names)]
    return framed(*({"image/encoded": image(at), **each} for at, each in enumerate(named)))


def parquet(names, *, has_bytes):
    cells = [
        {"bytes": image(at) if has_bytes else None, "path": name} for at, name in enumerate(names)
    ]
    table = pa.table({"image": pa.array(cells, STRUCT), "label": ["cat"] * len(names)})
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def webdataset(names):
    label = json.dumps({"label": "cat", "url": URL}).encode()
    return b"".join(
        member(name, image(at)) + member(f"{name.partition('.png')[0]}.json", label)
        for at, name in enumerate(names)
    )


def lines_of(form, file, head=""):
    """Return a function that returns a file with a head and a line for each name."""
    return lambda names: {file: head + "".join(map(form, names))}


# Of each format, the files that name images: (names) → {name of the file: its content}. The source
# is their folder, or the only file if it is an import file.
BOXES = ("coco", "pascal_voc", "cvat", "labelme", "create_ml", "via")
DOCUMENTS = {
    **{name: written(name) for name in BOXES},
    "csv": lines_of("TRAIN,{},cat\n".format, "a.csv"),
    "header": lines_of("{},cat\n".format, "a.csv", "image_uri,label\n"),
    "jsonl": lines_of(lambda name: json_lines(classified(name)), "a.jsonl"),
    "hugging_face": lines_of(
        lambda name: json_lines({"file_name": name, "label": "cat"}), "metadata.jsonl"
    ),
    "hugging_face_csv": lines_of("{},cat\n".format, "metadata.csv", "file_name,label\n"),
    "label_studio": lambda names: {
        "a.json": json.dumps([task([region()], image=n) for n in names])
    },
    "tfrecord": lambda names: {"a.tfrecord": tfrecord(names)},
    "parquet": lambda names: {"a.parquet": parquet(names, has_bytes=True)},
    "parquet_paths": lambda names: {"a.parquet": parquet(names, has_bytes=False)},
    "webdataset": lambda names: {"a.tar": webdataset(names)},
}
YAML = "train: a.txt\nnames: [cat]\n"
# Places of URLs that are no images of a class or with boxes.
OTHERS = {
    "masks": lines_of(lambda name: json_lines(mask(name)), "a.jsonl"),
    "yolo": lambda names: {"data.yaml": YAML, "a.txt": "\n".join(names)},
    "texts": lines_of(lambda name: json_lines({"textGcsUri": f"{name}.txt"}), "a.jsonl"),
    "videos": lines_of(lambda name: f"TRAIN,{name[:-4]}.mp4,cat,0,9\n", "a.csv"),
    "cut_line": lines_of(cut_line, "a.jsonl", json_lines(classified(SOUND))),
    "groups": lines_of("{0},cat,{0}\n".format, "a.csv", "path,label,group\n"),
}
IMPORT_FILES = ("a.csv", "a.jsonl")


def write(folder, files, names=()):
    """Write files and images; return the path of the source below the folder's parent."""
    for at, name in enumerate(names):
        (folder / name).write_bytes(image(at))
    for name, data in files.items():
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    only = next((name for name in files if name in IMPORT_FILES), "")
    return f"{folder.name}/{only}" if only else folder.name


def assert_no_secrets(folder, said):
    """No file below a folder, no name of one and no text has a secret; one names the image."""
    written = [path for path in folder.rglob("*") if path.is_file()]
    texts = [said.encode(), *(str(path).encode() + path.read_bytes() for path in written)]
    tables = (pq.read_table(path) for path in written if path.suffix == ".parquet")
    texts += (str(table.to_pylist()).encode() for table in tables)
    places = (re.search(b".{0,80}SEC[abc].{0,40}", text, re.DOTALL) for text in texts)
    assert [place[0] for place in places if place] == []
    assert any(b"127.0.0.1" in text or b"1.png" in text for text in texts)


@pytest.mark.parametrize("urls", [[URL], ODD_URLS], ids=["url", "odd"])
@pytest.mark.parametrize("name", [*DOCUMENTS, *OTHERS])
def test_no_format_shows_a_secret(name, urls, folder, monkeypatch, capfd, caplog):
    """A URL's password, token and signature are in no output, copy or message of any format."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RECORDGEN_STORAGE_ATTEMPTS", "1")
    source = write(folder / "in", {**DOCUMENTS, **OTHERS}[name]([*urls, SOUND]))
    (folder / "in" / SOUND).write_bytes(image(0))
    out, more = str(folder / "to/out"), ["--group-by", "group"] if name == "groups" else []
    more += ["--allow", "https", "--max-reject-fraction", "1", "--fail-on", "none"]
    if main(["convert", source, out, *more]) == 0:
        assert not (folder / "to/out/.recordgen-staging").exists()
        for copy in ("folder", "webdataset"):
            main(["export", copy, out, "--to", str(folder / "to" / copy)])
    assert_no_secrets(folder / "to", "".join(capfd.readouterr()) + caplog.text)


def test_no_frame_shows_a_secret(folder, capfd):
    """The path beside the bytes of an image in a DataFrame is a URL, too."""
    cells = [{"bytes": image(at), "path": URL} for at in range(2)]
    frame = pd.DataFrame({"image": cells, "label": ["cat", "dog"]})
    run = recordgen.convert(frame, folder / "to/out", lint="-ALL")
    assert run.dataset.examples == 2
    assert_no_secrets(folder / "to", "".join(capfd.readouterr()) + str(run.detection))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_path_is_no_url(name, folder, monkeypatch):
    """Names with ``?``, ``#`` or ``%`` are read from a source named by any kind of path."""
    monkeypatch.chdir(folder)
    source = write(folder / "in", DOCUMENTS[name](NAMES), NAMES)
    digests = set()
    for at, path in enumerate((source, folder / source, f"file://{folder / source}")):
        run = recordgen.convert(path, f"o?{at}#", lint="-ALL", seed=1)
        assert run.dataset.examples == len(NAMES)
        digests.add(run.dataset.digest)
    assert len(digests) == 1
    again = recordgen.convert(source, "o?0#", lint="-ALL", seed=1, append=True)
    assert again.dataset.examples == len(NAMES)


def test_a_file_url_is_a_path(folder):
    """Two files whose names differ behind a ``?`` are two images."""
    names = ("r?token=1.png", "r?token=2.png")
    lines = "".join(f"TRAIN,file://{folder}/in/{name},cat\n" for name in names)
    source = write(folder / "in", {"a.csv": lines}, names)
    assert recordgen.convert(folder / source, folder / "o", lint="-ALL").dataset.examples == 2
