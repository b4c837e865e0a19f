"""WebDataset: images stay in their tars, and hostile tars cost their rows only."""

import json
import tarfile
import time

import pytest

import recordgen
from recordgen.errors import NothingToConvertError, RecordgenError, SourceError
from recordgen.formats.archives import tar_members
from tests.conftest import error_of, run_python, write_file
from tests.formats.containers import converted, converted_each, image
from tests.formats.sources import write_files


def member(name, data=b"", **more):
    """Return a member's header and data."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


def sample(key, cls=b"0", seed=0):
    return member(f"{key}.jpg", image(seed)) + member(f"{key}.cls", cls)


END = bytes(1024)


def test_labels(folder):
    """Bytes are the file's; numbers get the names of classes.txt; tars name splits."""
    parts = ("train", "train", "abc"), ("val", "eval", "d"), ("test", "test", "e")
    for word, _, keys in parts:
        data = b"".join(sample(f"x/{key}", b"1\n", seed=ord(key)) for key in keys)
        (folder / f"in/{word}-000000.tar").write_bytes(data + END)
    (folder / "in/classes.txt").write_text("0:cat\n1:dog\n2:horse\n")
    dataset, rejects, examples = converted(folder)
    assert (dataset.options["format"], list(dataset.labels)) == (
        "webdataset",
        ["cat", "dog", "horse"],
    )
    assert not rejects
    assert {(uri, split) for uri, (split, _) in examples.items()} == {
        (f"{word}-000000.tar/x/{key}.jpg", split) for word, split, keys in parts for key in keys
    }
    for uri, (_, values) in examples.items():
        assert values["image/encoded"] == [image(ord(uri[-5]))]
        assert values["image/class/text"] == [b"dog"]
    with pytest.raises(NothingToConvertError):  # no labels of parts
        converted(folder, task="object_detection")


@pytest.mark.parametrize("further", [(), ("caption",)])
def test_keys_that_are_not_read_are_said(folder, further):
    """A key of the JSON without a role is a finding; keys that are read, or ours, are none."""
    values = {"label": "cat", "width": 8, "source_id": "a", **dict.fromkeys(further, "A cat.")}
    member_of_json = member("a.json", json.dumps(values).encode())
    (folder / "in/train.tar").write_bytes(member("a.jpg", image()) + member_of_json + END)
    found = recordgen.check(str(folder / "in")).lint.findings()
    said = [item.message for item in found if item.code == "SKIPPED"]
    assert [message.rpartition(": ")[2] for message in said] == [f"1 ({it})" for it in further]


def test_a_key_with_two_texts_is_rejected(folder):
    """Of two JSON files for one key in a tar of texts, none is taken."""
    texts = [{"text": f"A good text of {n}", "label": "ab"[n % 2]} for n in range(13)]
    keys = iter("abcdefghijkkl")
    members = [member(f"{next(keys)}.json", json.dumps(text).encode()) for text in texts]
    (folder / "in/a.tar").write_bytes(b"".join(members) + END)
    rows = recordgen.check(str(folder / "in/a.tar")).dataset.rows
    assert (rows.examples, rows.rejected) == (11, {"bad_line": 1})


def test_check_append_and_groups_read_ranges(folder):
    """Equal images of a tar share a split; check decodes them; further tars are appended."""
    data = b"".join(sample(f"{key:03d}", str(key % 2).encode(), seed=key // 2) for key in range(20))
    tar = write_file(folder / "in/a.tar", data + END)
    dataset, rejects, examples = converted(folder, group_by="content", source=tar)
    assert (dataset.examples, rejects) == (20, {})
    by_image = {}
    for split, values in examples.values():
        by_image.setdefault(values["image/key/sha256"][0], set()).add(split)
    assert {len(splits) for splits in by_image.values()} == {1}
    assert len(by_image) == 10
    assert recordgen.check(str(tar)).dataset.examples == 20
    (folder / "in/b.tar").write_bytes(sample("x", seed=99) + END)
    more = recordgen.convert(
        str(folder / "in/*.tar"), folder / "out", append=True, group_by="content", lint="-ALL"
    )
    assert more.dataset.examples == 21


def test_changed_while_it_was_converted(folder):
    """Another tar under the same name has other images in the same places."""
    from recordgen.conversion.api import store_of
    from recordgen.core.rows.row import PlannedRow, Range
    from recordgen.errors import PayloadError
    from recordgen.options import ConvertOptions

    tar = write_file(folder / "in/a.tar", sample("a") + END)
    store = store_of(ConvertOptions())
    address = Range(str(tar), 512, len(image())).address
    [info] = store.infos([address], [""])
    row = PlannedRow(0, "", 1, address, None, info.size, info.version, False)
    assert store.fetcher([str(tar)]).start(row)() == image()
    tar.write_bytes(sample("a", seed=1) + sample("b") + END)
    assert error_of(PayloadError, store.fetcher([str(tar)]).start(row)).code == "changed"


def patched(data, at, raw):
    """Return a header with other bytes and the right checksum."""
    block = bytearray(data)
    block[at : at + len(raw)] = raw
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block[:512])
    return bytes(block)


NEGATIVE = patched(member("n.jpg", image()), 124, b"\xff" * 12)
HUGE = patched(member("n.jpg", image()), 124, b"\x80" + b"\0" * 3 + b"\x7f" + b"\xff" * 7)
TWO_GB = b"20000000000\0"
MANY = [f"n.{number}" for number in range(99)]
JPEG = member("n.jpg", image())
GOOD = sample("a")


def keyword(key, value):
    text = b" %s=%s\n" % (key, value)
    size = next(it for it in range(len(text), len(text) + 9) if it == len(text) + len(str(it)))
    return b"%d%s" % (size, text)


def extended(*keywords):
    """Return an extended header with the records of these keywords and values."""
    return member("p", b"".join(keyword(*pair) for pair in keywords), type=b"x")


DEEP = extended((b"path", b"a/" * 50_000 + b"n.jpg"))
LONG = extended((b"path", b"a/" * 1_000_000))
GNU_DEEP = member("a/" * 500_000 + "n.jpg", image())

# name: the members after a good one, the reject's uri below the tar, its code
HOSTILE = {
    "negative size": (NEGATIVE, "n.jpg", "corrupt"),
    "size above the file": (HUGE, "n.jpg", "truncated"),
    "link": (member("n.jpg", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "n.jpg", "not_a_file"),
    "hard link": (member("n.jpg", type=tarfile.LNKTYPE, linkname="a.jpg"), "n.jpg", "not_a_file"),
    "sparse": (member("n.jpg", type=tarfile.GNUTYPE_SPARSE), "n.jpg", "corrupt"),
    "name outside": (member("../n.jpg", image()), "../n.jpg", "not_allowed"),
    "absolute name": (member("/n.jpg", image()), "/n.jpg", "not_allowed"),
    "extended header of 2 GB": (patched(member("x", type=b"x"), 124, TWO_GB), "", "truncated"),
    "long name of 2 GB": (patched(member("x", type=b"L"), 124, TWO_GB), "", "truncated"),
    "deep name": (DEEP + JPEG, f"a/…{len(GOOD + DEEP)}-n.jpg", "too_many_parts"),
    "deep GNU name": (GNU_DEEP, f"a/…{len(GOOD + GNU_DEEP) - len(JPEG)}-a", "too_many_parts"),
    "extended header of 2 MB": (LONG + JPEG, "n.jpg", "too_many_parts"),
    "sparse by keyword": (extended((b"GNU.sparse.map", b"1")) + JPEG, "n.jpg", "corrupt"),
    "half an extended header": (DEEP[:700], "", "truncated"),
    "no header": (b"\1" * 512, "", "corrupt"),
    "half a header": (member("n.jpg")[:100], "", "truncated"),
    "half an image": (sample("n")[:700], "n.jpg", "truncated"),
    "empty image": (member("n.jpg") + member("n.cls", b"0"), "n.jpg", "empty_file"),
    "no image": (member("n.cls", b"0"), "n", "missing_file"),
    "two images": (member("n.jpg", image()) + member("n.png", b"1"), "n", "bad_annotation"),
    "a part twice": (sample("n") + member("n.cls", b"1"), "n.cls", "bad_annotation"),
    "many parts": (b"".join(map(member, MANY)), "n.64", "bad_annotation"),
    "unknown class": (sample("n", b"2"), "n.jpg", "bad_annotation"),
    "number of 400 digits": (sample("n", b"9" * 400), "n.jpg", "bad_annotation"),
    "label is no text": (sample("n", b"\xff"), "n.jpg", "bad_annotation"),
    "json is none": (JPEG + member("n.json", b"["), "n.jpg", "bad_annotation"),
    "json nested too deep": (JPEG + member("n.json", b"[" * 100_000), "n.jpg", "bad_annotation"),
    "label of 5 kB": (sample("n", b"x" * 5000), "n.jpg", "bad_annotation"),
    "name is no text": (sample("n\udcff"), "n\\udcff.jpg", "bad_encoding"),
    "no image bytes": (member("n.jpg", b"text") + member("n.cls", b"0"), "n.jpg", "not_an_image"),
}


def test_a_bad_member_is_a_reject_with_its_name(folder):
    """A bad member is a reject with its name; the good one before it stays."""
    tars = {f"{at:02}.tar": GOOD + more for at, (more, _, _) in enumerate(HOSTILE.values())}
    write_files(folder / "in", {**tars, "classes.txt": "cat\ndog\n"})
    for name, (tar, [reject], examples) in converted_each(folder, HOSTILE).items():
        _, uri, code = HOSTILE[name]
        assert reject["code"] == code, name
        assert reject["uri"].removeprefix("'").removesuffix("'") == (f"{tar}/{uri}" if uri else "")
        assert tar in reject["uri"] + reject["message"]
        assert examples == [f"{tar}/a.jpg"]


def test_long_names_folders_and_other_files(folder):
    """GNU and pax names, folders, hidden files, masks and a README before a label."""
    long = f"{'d' * 150}/{'e' * 150}"
    parts = ((f"{long}.jpg", image(1)), (f"{long}.cls", b"0"))
    pax = [extended((b"path", name.encode())) + member("x", data) for name, data in parts]
    gnu = sample(f"{'f' * 150}", seed=2)
    hidden = member("./", type=tarfile.DIRTYPE) + member("._a.jpg", b"1")
    mask = member("b.jpg", image(3)) + member("b.mask.png", b"1")
    mask += member("README", b"1") + member("b.cls", b"1")
    (folder / "in/a.tar").write_bytes(b"".join((hidden, sample("./a"), gnu, mask, *pax, END)))
    _, rejects, examples = converted(folder)
    names = {"a.jpg", f"{'f' * 150}.jpg", "b.jpg", f"{long}.jpg"}
    assert (rejects, set(examples)) == ({}, {f"a.tar/{name}" for name in names})


def test_no_memory_for_what_headers_announce(folder):
    """A tar of 3 GB of holes, which announce one member, is read in little memory."""
    tar = folder / "in/a.tar"
    with tar.open("wb") as file:
        file.write(GOOD + patched(member("x", type=b"x"), 124, b"%011o\0" % (1 << 31)))
        file.truncate(3 << 30)
    program = (
        "import resource, recordgen\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        f"recordgen.convert({str(tar)!r}, {str(folder / 'out')!r}, max_reject_fraction=1)\n"
    )
    done = run_python("-c", program)
    assert done.returncode == 0, done.stderr
    assert recordgen.read_dataset(folder / "out").rows.rejected == {"too_many_parts": 1}


def test_keywords_and_empty_headers_take_linear_time(tmp_path):
    """Global headers, which may follow any number of keywords, do not look at them again."""
    many = extended(*((b"%d" % number, b"") for number in range(60_000)))
    tar = write_file(tmp_path / "a.tar", many + member("g", type=b"g") * 2000 + GOOD + END)
    start = time.process_time()
    with tar.open("rb") as file:
        assert [found.name for found in tar_members(file)] == ["a.jpg", "a.cls"]
    assert time.process_time() - start < 5


CAPTIONS = [b"a dog that runs over a green field", b'{"caption": "x", "label": 1.5}']


@pytest.mark.parametrize("text", CAPTIONS)
def test_captions_are_no_labels(text, folder):
    """Captions beside images are refused as labels."""
    suffix = "json" if text.startswith(b"{") else "txt"
    data = member("a.jpg", image()) + member(f"a.{suffix}", text)
    (folder / "in/a.tar").write_bytes(data + END)
    with pytest.raises(RecordgenError):
        converted(folder, max_reject_fraction=0)


def test_not_over_http(folder):
    """Archives are not read over HTTP."""
    with pytest.raises(SourceError):
        recordgen.plan("https://example.invalid/a.tar")
