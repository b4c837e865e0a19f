"""ZIP and tar archives: the same dataset as from the unpacked folder, and hostile archives."""

import io
import json
import pickle
import re
import shutil
import tarfile
import zipfile
import zlib
from functools import cache

import pytest
from PIL import Image

import recordgen
from recordgen.conversion.api import convert_files
from recordgen.errors import NothingToConvertError, SourceError
from recordgen.formats.archives import Archive
from recordgen.formats.import_file import find_import_files
from recordgen.formats.row_reader import RowReader
from recordgen.formats.source import open_source
from recordgen.kubeflow.convert import runner_factory
from recordgen.options import ConvertOptions
from tests.conftest import encoded, tree_bytes
from tests.formats.containers import converted, image
from tests.formats.sources import write_files
from tests.formats.test_coco import box
from tests.formats.test_coco import coco as document_of_coco
from tests.formats.test_coco import image as coco_image

BOX = "1 0.5 0.5 0.2 0.4\n"


def yolo():
    files = {"data.yaml": "names: [cat, dog]\ntrain: images/train\nval: images/val\n"}
    for at, split in enumerate(["train"] * 6 + ["val"] * 3):
        files[f"images/{split}/{at}.jpg"] = image(at)
        files[f"labels/{split}/{at}.txt"] = BOX
    return files


def coco():
    images = (coco_image(at, f"{at}.jpg", width=64, height=48) for at in range(5))
    document = document_of_coco(*images, boxes=[box(at, 2, 1, 2, 10, 12) for at in range(5)])
    files = {f"train/{at}.jpg": image(at) for at in range(5)}
    return {**files, "train/_annotations.coco.json": document}


def by_label():
    return {f"{split}/{label}/{at}.jpg": image(at + len(label)) for at in range(3)
            for split in ("train", "test") for label in ("cat", "horse")}  # fmt: skip


def metadata():
    lines = [json.dumps({"file_name": f"{at}.jpg", "label": "ab"[at % 2]}) for at in range(4)]
    return {"metadata.jsonl": "\n".join(lines), **{f"{at}.jpg": image(at) for at in range(4)}}


def masks():
    mask = encoded(Image.new("L", (16, 12), 1), "PNG")
    images = {f"images/{at}.jpg": image(at) for at in range(4)}
    return {**images, **{f"masks/{at}.png": mask for at in range(4)}}


def zipped(folder, file, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(file, "w", method) as archive:
        for name in sorted(folder.rglob("*")):
            archive.write(name, name.relative_to(folder))


def stored(folder, path):
    zipped(folder, path, zipfile.ZIP_STORED)


def streamed(folder, path):
    """A ZIP whose local headers have no sizes, as programs write it to a pipe."""

    class Pipe(io.BytesIO):
        def tell(self):
            raise OSError

    pipe = Pipe()
    zipped(folder, pipe)
    path.write_bytes(pipe.getvalue())


def tar(folder, path):
    with tarfile.open(path, "w") as archive:
        archive.add(folder, ".")


# the files, how they are packed, the name of the archive
PACKED = [
    (yolo, stored, "a.zip"),
    (yolo, zipped, "a.zip"),
    (yolo, streamed, "a.zip"),
    (yolo, tar, "a.tar"),
    (coco, stored, "a.zip"),
    (coco, tar, "a.tar"),
    (by_label, zipped, "a.zip"),
    (metadata, zipped, "a.zip"),
    (masks, zipped, "a.zip"),
    (masks, tar, "a.tar"),
]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Return a function that converts a folder of files once: → the folder, the dataset."""

    @cache
    def convert(files):
        folder = tmp_path_factory.mktemp(files.__name__)
        write_files(folder / "in", files())
        dataset, rejects, _ = converted(folder)
        assert rejects == {}
        return folder, dataset

    return convert


def shards(folder):
    return {name: data for name, data in tree_bytes(folder / "out").items() if "Split" in name}


@pytest.mark.parametrize(("files", "pack", "name"), PACKED)
def test_same_as_the_folder(files, pack, name, tmp_path, unpacked):
    """Shards are equal byte for byte, since paths in the archive are those in the folder."""
    folder, first = unpacked(files)
    pack(folder / "in", tmp_path / name)
    second, rejects, _ = converted(tmp_path, source=tmp_path / name)
    assert rejects == {}
    assert first.options["format"] == second.options["format"]
    assert (first.digest, first.examples) == (second.digest, second.examples)
    assert shards(folder) == shards(tmp_path)


def test_workers_read_the_archive(tmp_path):
    """What a worker gets has no list of the archive's files, which it reads again."""
    write_files(tmp_path / "in", yolo())
    zipped(tmp_path / "in", tmp_path / "a.zip")
    source, options = open_source(tmp_path / "a.zip", ConvertOptions())
    reader = RowReader(options)
    data = pickle.dumps((reader, source.files))
    assert b"labels/train/0.txt" not in data
    copy, files = pickle.loads(data)
    assert [*copy.read_all(files)] == [*reader.read_all(source.files)] != []


def test_access_holds_for_the_archive(tmp_path):
    """In a pipeline step, images of the archive are reached; allow must name the archive."""
    write_files(tmp_path / "in", yolo())
    path = tmp_path / "a.zip"
    zipped(tmp_path / "in", path)
    files, options = find_import_files(str(path)), ConvertOptions(confined=True)
    step = convert_files(files, str(tmp_path / "out"), options, new_runner=runner_factory([]))
    assert step.dataset.examples == 9
    _, rejects, _ = converted(tmp_path, source=path, allow=[str(path)])
    assert rejects == {}
    with pytest.raises(NothingToConvertError, match="not_allowed"):
        converted(tmp_path, source=path, allow=[str(tmp_path / "in")])


GOOD = [(name, data) for name, data in by_label().items()]
FLAT = [(f"{label}/{at}.jpg", image(at)) for label in ("cat", "dog") for at in range(2)]


def entry(name, data=b"x", **more):
    """Return the members of an archive whose last one is odd."""
    info = zipfile.ZipInfo(name)
    for key, value in more.items():
        setattr(info, key, value)
    return [*GOOD, (info, data)]


def zip_of(path, *members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def tar_of(path, *members):
    with tarfile.open(path, "w") as archive:
        for name, data in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


NAMES = ["a/" * 30_000 + "x.jpg", "a/" * 101 + "x.jpg", "x" * 5000 + ".jpg"]


@pytest.mark.parametrize(("pack", "file"), [(zip_of, "a.zip"), (tar_of, "a.tar")])
def test_a_name_that_is_too_long_or_too_deep_costs_its_file(pack, file, tmp_path):
    """Names beyond the limits are rejects under a short name; the other files are read."""
    path = pack(tmp_path / file, *FLAT, *((name, b"x") for name in NAMES))
    _, rejects, examples = converted(tmp_path, source=path)
    assert [item["code"] for item in rejects.values()] == ["too_many_parts"] * len(NAMES)
    assert max(map(len, rejects)) < 200
    assert sorted(examples) == [name for name, _ in FLAT]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_checksums_are_compared(method, tmp_path):
    """An image with another checksum is a reject; a document ends the run, and is named."""
    files = [*coco().items()]
    path = zip_of(tmp_path / "a.zip", *files, method=method)
    places = {info.filename: info.CRC for info in zipfile.ZipFile(path).infolist()}
    data = path.read_bytes()
    for name, code in (("train/3.jpg", "corrupt"), ("train/_annotations.coco.json", None)):
        right = places[name].to_bytes(4, "little")
        path.write_bytes(data.replace(right, bytes(byte ^ 1 for byte in right)))
        if code:
            _, rejects, examples = converted(tmp_path, source=path)
            assert {uri: item["code"] for uri, item in rejects.items()} == {name: code}
            assert len(examples) == 4
        else:
            with pytest.raises(SourceError, match=r"a\.zip/.*json.*checksum"):
                recordgen.plan(str(path))


def test_a_nul_in_the_path_of_a_tar_costs_its_file(tmp_path):
    """Cut off at the NUL, the path would be another one, perhaps of another class."""
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for at in range(2):
            info = tarfile.TarInfo(f"cat/{at}.jpg")
            info.size = len(image(at))
            info.pax_headers = {"path": "dog/1.jpg\0x.jpg"} if at else {}
            archive.addfile(info, io.BytesIO(image(at)))
    _, rejects, examples = converted(tmp_path, source=tmp_path / "a.tar")
    assert [item["code"] for item in rejects.values()] == ["too_many_parts"]
    assert [*examples] == ["cat/0.jpg"]


def listed(at, raw, entry=0):
    """Return a function that changes an entry of a ZIP's list of files."""

    def change(data):
        place = [found.start() for found in re.finditer(b"PK\1\2", data)][entry] + at
        return data[:place] + raw + data[place + len(raw) :]

    return change


def cut(count):
    return lambda data: data[:-count]


def link(kind):
    info = tarfile.TarInfo("cat/x.jpg")
    info.type, info.linkname = kind, "/etc/passwd"
    return info, b""


LINK = {"external_attr": 0o120777 << 16}

TWICE = [*GOOD, ("cat/9.jpg", b"1"), ("./cat/9.jpg", b"2")]

# the archive, its members, what is changed in it, what the message names
REFUSED = {
    "name outside": (zip_of, entry("../x.jpg"), bytes, "unpack it"),
    "absolute name": (zip_of, entry("/x.jpg"), bytes, "unpack it"),
    "Windows name outside": (zip_of, entry("..\\x.jpg"), bytes, "unpack it"),
    "a link in a ZIP": (zip_of, entry("x.jpg", b"/etc/passwd", **LINK), bytes, "unpack it"),
    "bzip2": (zip_of, entry("x.jpg", compress_type=zipfile.ZIP_BZIP2), bytes, "unpack it"),
    "one name twice": (zip_of, [*entry("cat/9.jpg"), ("cat//9.jpg", b"x")], bytes, "unpack it"),
    "nothing in it": (zip_of, [], bytes, ""),
    # a comment or a name that reaches over the next entry would drop its file in silence
    "a long comment": (zip_of, FLAT, listed(32, b"\x37\0"), ""),
    "a long name": (zip_of, FLAT, listed(28, b"\x40\0"), ""),
    # the nine letters of the name are an extra field
    "no name": (zip_of, FLAT, listed(28, b"\0\0\x09\0"), ""),
    "encrypted": (zip_of, GOOD, listed(8, b"\1"), "encrypted"),
    "cut off by a byte": (zip_of, GOOD, cut(1), "damaged"),
    "without its end": (zip_of, GOOD, cut(30), "damaged"),
    "without most of its list": (zip_of, GOOD, cut(500), "damaged"),
    "two files of one name": (tar_of, TWICE, bytes, r"cat/9\.jpg"),
    "a link": (tar_of, [link(tarfile.SYMTYPE)], bytes, "link"),
    "a hard link": (tar_of, [link(tarfile.LNKTYPE)], bytes, "link"),
}


@pytest.mark.parametrize(("pack", "members", "change", "words"), REFUSED.values(), ids=REFUSED)
def test_an_odd_archive_is_refused(pack, members, change, words, tmp_path):
    """No file may be lost in silence, and none is read of which it is unclear which one counts."""
    path = pack(tmp_path / ("a.tar" if pack is tar_of else "a.zip"), *members)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(SourceError, match=rf"{path.name}.*{words}"):
        recordgen.plan(str(path))


SMALL = b"\1\0\0\0"

# changes of an archive of five files, the numbers of those that are rejected, and their code
LIES = {
    # Many entries may name the bytes of one file, and grow without limit: none of them is read.
    "files that overlap": ([listed(42, bytes(4), at) for at in range(4)], range(4), "corrupt"),
    "another name": ([lambda data: data.replace(b"0.jpg", b"9.jpg", 1)], [0], "corrupt"),
    "a place within a file": ([listed(42, SMALL)], [0], "corrupt"),
    "less than it inflates to": ([listed(24, SMALL)], [0], "corrupt"),
    "a place after the end": ([listed(20, SMALL[::-1])], [0], "corrupt"),
    "a large size": ([listed(24, b"\0\0\0\x40")], [0], "too_many_bytes"),
}


@pytest.mark.parametrize(("changes", "lost", "code"), LIES.values(), ids=LIES)
def test_a_list_of_files_that_lies_costs_these_files(changes, lost, code, tmp_path):
    """It must agree with the files, and with the name in a file's own header; others are read."""
    names = [f"{at % 2}/{at}.jpg" for at in range(5)]
    members = [(name, image(at)) for at, name in enumerate(names)]
    path = zip_of(tmp_path / "a.zip", *members, method=zipfile.ZIP_DEFLATED)
    for change in changes:
        path.write_bytes(change(path.read_bytes()))
    _, rejects, examples = converted(tmp_path, source=path)
    assert {uri: item["code"] for uri, item in rejects.items()} == {names[at]: code for at in lost}
    assert sorted(examples) == sorted(name for name in names if name not in rejects)


def test_a_document_that_grows_too_much_is_refused_unread(tmp_path):
    """A document that inflates to 300 times its size and more is refused before it is read."""
    member = "instances_train.json", '{"images": [' + " " * (65 << 20)
    zip_of(tmp_path / "a.zip", member, method=zipfile.ZIP_DEFLATED)
    with pytest.raises(SourceError, match=r"a\.zip.*instances_train\.json"):
        recordgen.plan(str(tmp_path / "a.zip"))


def test_a_damaged_document_names_archive_and_member(tmp_path):
    """An error in an archive names it and its damaged member."""
    write_files(tmp_path / "in", coco())
    zipped(tmp_path / "in", tmp_path / "a.zip")
    part = Archive(str(tmp_path / "a.zip")).range_of("train/_annotations.coco.json")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    short = stream.compress(b"{}") + stream.flush()
    for damage in (b"\xff" * 8, short):
        data[part.offset : part.offset + len(damage)] = damage
        (tmp_path / "a.zip").write_bytes(data)
        with pytest.raises(SourceError, match=r"a\.zip.*_annotations\.coco\.json"):
            recordgen.plan(str(tmp_path / "a.zip"))


def test_files_of_programs_and_import_files(tmp_path):
    """Hidden files and __MACOSX are skipped; an import file must be unpacked."""
    extra = [("__MACOSX/cat/._1.jpg", b"x"), (".DS_Store", b"x"), ("cat/._1.jpg", b"x")]
    path = zip_of(tmp_path / "a.zip", *GOOD, *extra)
    assert recordgen.check(str(path)).dataset.examples == len(GOOD)
    zip_of(tmp_path / "b.zip", ("labels.csv", "1.jpg,cat\n"), ("1.jpg", image()))
    with pytest.raises(SourceError, match=r"b\.zip.*labels\.csv"):
        recordgen.plan(str(tmp_path / "b.zip"))


def test_a_folder_of_that_name_is_a_folder(tmp_path):
    """A folder named like an archive is read; a tar.gz is refused."""
    write_files(tmp_path / "photos.zip", by_label())
    assert recordgen.check(str(tmp_path / "photos.zip")).dataset.examples == 12
    shutil.make_archive(str(tmp_path / "b"), "gztar", tmp_path / "photos.zip")
    with pytest.raises(SourceError, match=r"b\.tar\.gz"):
        recordgen.plan(str(tmp_path / "b.tar.gz"))
