"""Missing files, unreadable rows and slips in paths: the message ends in what helps."""

import posixpath

import pytest

import recordgen
from recordgen import storage
from recordgen.errors import SourceError, TooManyRejectsError
from recordgen.formats.detect import detect
from recordgen.formats.image_root import Hint, missing_hint
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject
from tests.formats.sources import Reading, refusal, write_files


def hint(folder, files, *uris):
    """Return the hint for rows of ``labels.csv`` that name missing files."""
    write_files(folder, dict.fromkeys(files, ""))
    source = str(folder / "labels.csv")
    return missing_hint([Reject(source, 1, uri, "missing_file", "no such file") for uri in uris])


# file, uri
OTHER_PLACES = [
    ("images/train/1.jpg", "img/1.jpg"),  # the folder
    ("1.png", "1.jpg"),  # the suffix
    ("Images/A.jpg", "images\\a.JPG"),  # the case
]


@pytest.mark.parametrize(("file", "uri"), OTHER_PLACES)
def test_a_file_of_that_name_is_named(file, uri, tmp_path):
    """Folder, suffix or letter case of a path may be wrong."""
    said = hint(tmp_path, [file], uri).text
    assert said.index(uri) < said.rindex(file)


def test_two_candidates_are_no_hint(tmp_path):
    """With two files of that name, or none, there is nothing to say."""
    assert "a/1.jpg" not in hint(tmp_path, ["a/1.jpg", "b/1.jpg"], "1.jpg").text
    assert hint(tmp_path / "x", ["a/1.jpg", "b/1.png"], "1.jpg").root  # only one has that name
    assert hint(tmp_path, [], "x/2.jpg") == hint(tmp_path, [], "x\\2.jpg") == Hint()
    assert not hint(tmp_path / "y", ["a/1.jpg"], "1.jpg#0", "1.jpg_Fish").root  # no suffixes
    elsewhere = Reject("https://a.example/labels.csv", 1, "1.jpg", "missing_file", "")
    assert missing_hint([elsewhere]) == Hint()


# files, uris, root
FOLDERS = [
    (["images/1.jpg", "images/2.JPG"], ["1", "2"], "images/"),
    (["a/b/1.jpg", "a/c/2.jpg"], ["1.jpg", "2.jpg"], "a/"),
    (["1.jpg"], ["1"], ""),  # beside the import file
    (["my photos/1.jpg"], ["1"], "my photos/"),
    (["../Img/a/1.jpg"], ["1.jpg"], None),  # only below the import file's folder
    (["x/1.jpg", "y/1.jpg"], ["/home/me/x/1.jpg", "/home/me/y/1.jpg"], ""),
    (["z/x/1.jpg"], ["x/1.jpg"], "z/"),
    (["a/1.mp4"], ["1.mp4"], None),  # no images
    (["a/1.jpg", "b/1.jpg"], ["1.jpg"], None),
    ([], ["1.jpg"], None),
]


@pytest.mark.parametrize(("files", "uris", "root"), FOLDERS)
def test_the_folder_is_proposed(files, uris, root, tmp_path):
    """The folder of missing files is known, and is written like the import file's."""
    folder = tmp_path / "in"
    folder.mkdir()
    expected = "" if root is None else f"{posixpath.normpath(folder / root)}/"
    assert hint(folder, files, *uris).root == expected


# lines, columns
COMMANDS = [
    ("id,breed\n{},dingo\n{},boston bull\n{},dingo\n", "path=id,label=breed"),
    ("image,breed\n{},dingo\n{},boston bull\n{},dingo\n", "path=image,label=breed"),
    ("id,age,breed\n{},3,dingo\n{},5,boston\n{},3,dingo\n", "path=id,label=breed"),
]


@pytest.mark.parametrize(("lines", "columns"), COMMANDS)
@pytest.mark.parametrize("form", ["{:04x}", "{:04d}"])
def test_the_whole_command_is_proposed(lines, columns, form, tmp_path, make_pictures):
    """A CSV of names that is refused is read with the options that the message proposes."""
    names = [form.format(n) for n in (5, 77, 4000)]
    make_pictures(*(f"train/{name}.jpg" for name in names))
    source = tmp_path / "in/labels.csv"
    source.write_text(lines.format(*names))
    refused = refusal(recordgen.check, source)
    root = f"{tmp_path}/in/train/"
    assert refused.options == {"columns": columns, "image_root": root}
    rows = Reading(source, columns=columns, image_root=root).rows
    assert [row.uri for row in rows] == [f"train/{name}.jpg" for name in names]


def test_tables_beside_images(tmp_path, make_pictures):
    """A table stays one if its numbers are no names, or if the user says so."""
    make_pictures("plots/1.png", "plots/2.png", "plots/14.png")
    source = tmp_path / "in/table.csv"
    for rows in ("alcohol,ash\n14.23,1.71\n1.0,2.5\n2.0,3.5\n", "id,ash\n1,2\n7,3\n9,4\n"):
        source.write_text(rows)
        refused = refusal(Reading, source)
        assert refused.options == {"columns": "target=ash"}
    source.write_text("id,ash\n1,2\n2,3\n14,4\n")
    refused = refusal(Reading, source)
    assert refused.options["image_root"] == f"{tmp_path}/in/plots/"
    assert Reading(source, task="tabular").options.task == "tabular"
    assert Reading(source, columns="target=ash").options.task == "tabular"


def test_a_run_ends_with_the_hint(tmp_path):
    """A thousand missing files need one listing, and the error counts those that it found."""
    rows = [f"{number}.jpg,{number % 2}\n" for number in range(1000)]
    images = {f"images/{number}.jpg": "" for number in range(1000)}
    write_files(tmp_path, {**images, "a.csv": "".join(rows)})
    with pytest.raises(TooManyRejectsError, match=r"1,000 of the first 1,000 .* images/0.jpg") as e:
        recordgen.convert(tmp_path / "a.csv", tmp_path / "out")
    assert e.value.options == {"image_root": f"{tmp_path}/images/"}


# path, words
SLIPS = [
    ("images\\1.jpg", "/"),
    ("gs:/bucket/1.jpg", "gs://"),
    ("data/s3:/bucket/1.jpg", "s3://"),
    ("file:///a%20b.jpg", "/a b.jpg"),
    ("file:///a b.jpg", ""),
    ("gs://bucket/a%20b.jpg", ""),
    ("images/1.jpg", ""),
]


@pytest.mark.parametrize(("path", "words"), SLIPS)
def test_slips_in_paths(path, words):
    """A path that cannot be meant as written gets a hint."""
    found = storage.slip_hint(path)
    assert words in found
    assert bool(words) is bool(found)


@pytest.mark.parametrize("encoding", ["cp1252", "cp1250", "cp1251", "gb18030", "cp932", "cp949"])
def test_no_row_is_utf8(encoding, tmp_path):
    """If no row is readable, the error names its encoding, with and without a header."""
    sign = {"cp1252": "\u00e9", "cp1250": "\u0142", "cp1251": "\u0444"}.get(encoding, "\u6f22")
    text = f"image,caf{sign} is good\n".encode(encoding) * 3
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,label\n" + text)
    with pytest.raises(SourceError, match=rf"a.csv:2: .*encoding.* {encoding}"):
        detect([ImportFile(str(path))], ConvertOptions())
    path.write_bytes(text)
    with pytest.raises(TooManyRejectsError, match=rf"3 of 3 rows .*encoding.* {encoding}"):
        recordgen.convert(path, tmp_path / "out")


def test_labels_beside_images_are_no_images(tmp_path):
    """A file of labels has the name of its image."""
    assert "a.xml" not in hint(tmp_path, ["a.xml"], "a.jpg").text
    assert "b.png" in hint(tmp_path, ["b.xml", "b.png"], "b.jpg").text
