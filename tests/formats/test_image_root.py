"""Paths below an image root, exact or found by name, and where missing files may be."""

import json
import pickle
import posixpath

import pandas as pd
import pytest
from aiohttp import web

import recordgen
from recordgen import cli, storage
from recordgen.errors import SourceError, TooManyRejectsError, UsageError
from recordgen.formats import listing
from recordgen.formats.detect import detect
from recordgen.formats.image_root import Hint, ImageRoot, _agrees, missing_hint
from recordgen.formats.import_file import ImportFile
from recordgen.formats.row_reader import RowReader
from recordgen.formats.source import open_source
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject
from tests.conftest import write_file
from tests.formats.sources import Reading, refusal, write_files
from tests.opened import opened
from tests.servers import serving

QUIET = {"lint": "-ALL", "split": "names=no"}

# files below the root, path in a row, the files that fit
PATHS = [
    ("1.jpg", "1.jpg", "1.jpg"),
    ("1.jpg x/1.jpg", "1.jpg", "1.jpg"),  # an exact path
    ("x/1.jpg", "./x\\1.jpg", "x/1.jpg"),
    ("1.jpg", "1", "1.jpg"),  # no suffix
    ("v1.2.jpg", "v1.2", "v1.2.jpg"),
    ("1.jpg x/1.jpg", "1", "1.jpg"),  # the path as written is nearer
    ("1.jpg x/1.jpg", "x/1", "x/1.jpg"),
    ("a.jpg A.JPG", "a", "a.jpg"),  # the name as written is nearer
    ("1.jpg 1.txt", "1", "1.jpg"),  # labels are no image
    ("1.jpg", "1.png", "1.jpg"),  # another suffix
    ("img_1.jpg", "IMG_1.JPG", "img_1.jpg"),  # another letter case
    ("u\u0308.jpg", "\u00fc.jpg", "u\u0308.jpg"),  # another Unicode form, as Macs write
    ("a/b/1.jpg", "1.jpg", "a/b/1.jpg"),  # a folder is missing
    ("a/b/1.jpg 1.gif.png", "1", "a/b/1.jpg"),
    ("train/1.jpg test/1.jpg", "data/train/1.jpg", "train/1.jpg"),  # too many folders
    ("train/1.jpg test/1.jpg", "/home/author/test/1.jpg", "test/1.jpg"),
    ("1.jpg 1.png", "1", "1.jpg 1.png"),  # several fit
    ("a/1.jpg b/1.jpg", "1.jpg", "a/1.jpg b/1.jpg"),
    ("1.jpg b/1.png", "1.png", "1.jpg b/1.png"),
    ("IMG_1.jpg img_1.png", "img_1.jpg", "IMG_1.jpg img_1.png"),
    ("a/X.jpg x.png", "a/x", "a/X.jpg x.png"),  # one in the folder, one of the name
    ("a+b.jpg x.jpg", "a%2Bb.jpg", "a+b.jpg"),  # as in a URL
    ("a/1.jpg", "2.jpg", "2.jpg"),  # none fits
    ("1.txt", "1", "1"),
    ("10.jpg", "1", "1"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "path", "found"), PATHS)
def test_paths(files, path, found, tmp_path):
    """A path names the only file that fits best; with several, none is chosen."""
    write_files(tmp_path, dict.fromkeys(files.split(), ""))
    assert list(ImageRoot(str(tmp_path)).find(path, "a.csv")) == found.split()


def test_many_files_of_one_name(monkeypatch):
    """Data sets of studies have the same names in thousands of folders: few are compared."""
    compared = []

    def agrees(*names):
        compared.append(names)
        return _agrees(*names)

    monkeypatch.setattr("recordgen.formats.image_root._agrees", agrees)
    names = [f"train/patient{n}/study/view.jpg" for n in range(1000)]
    root = ImageRoot("images")
    vars(root)["tree"] = listing.Tree(names, (), ())
    for written in ("data/train/patient{}/study/view.jpg", "train/patient{}/study/view.png"):
        found = [root.find(written.format(n), "a.csv") for n in range(1000)]
        assert found == [[name] for name in names]
    assert 0 < len(compared) < 5 * len(names)


@pytest.mark.parametrize("path", ["{}/other/1.jpg", "../other/1.jpg"])
def test_exact_paths_out_of_the_root(path, tmp_path):
    """A file that a row names exactly has precedence over one of the same name."""
    write_files(tmp_path, dict.fromkeys(("root/1.jpg", "other/1.jpg"), ""))
    root, written = str(tmp_path / "root"), path.format(tmp_path)
    assert ImageRoot(root).find(written, "a.csv") == (written,)
    confined = ImageRoot.of(ConvertOptions(image_root=root, confined=True))
    assert list(confined.find(written, f"{tmp_path}/root/a.csv")) == ["1.jpg"]


@pytest.fixture
def names(tmp_path, make_pictures, monkeypatch):
    """Return a folder with ``in/images/{0..5}.jpg``, and the CSV of their names."""
    make_pictures(*(f"images/{n}.jpg" for n in range(6)))
    rows = "".join(f"{n},{'cat' if n % 2 else 'dog'}\n" for n in range(6))
    (tmp_path / "in/train.csv").write_text(f"image_id,label\n{rows}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def digest(source, **options):
    return recordgen.check(source, **QUIET, **options).dataset.digest


def test_the_dataset_of_complete_paths(names):
    """A CSV of names below a root, or in a template, gives the records of complete paths."""
    lines = [f"{n}.jpg,{'cat' if n % 2 else 'dog'}" for n in range(6)]
    objects = [{"id": name, "label": label} for name, label in (each.split(",") for each in lines)]
    files = {
        "whole.csv": "\n".join(["image_id,label", *(f"images/{line}" for line in lines)]),
        "a.jsonl": "\n".join(map(json.dumps, objects)),
    }
    write_files(names / "in", files)
    expected = digest("in/whole.csv")
    assert digest("in/train.csv", image_root="in/images") == expected
    assert digest("in/train.csv", image_root=names / "in/images/") == expected
    assert digest("in/train.csv", image_root="in") == expected
    assert digest(str(names / "in/train.csv"), image_root="in") == expected
    assert digest("in/a.jsonl", image_root="in", columns="path=id,label=label") == expected
    assert digest("in/train.csv", columns="path=images/{image_id}.jpg") == expected
    for template, is_same in (("{image_id}.png", True), ("x_{image_id}.jpg", False)):
        found = digest("in/train.csv", image_root="in/images", columns=f"path={template}")
        assert (found == expected) is is_same


def test_files_beside_the_folder_of_the_import_file(names):
    """A relative root gives relative paths, as a person would write them."""
    (names / "labels").mkdir()
    (names / "in/train.csv").rename(names / "labels/train.csv")

    def shown(root):
        return Reading("labels/train.csv", image_root=root).detection.rows[0].subject

    assert shown("in/images") == "../in/images/0.jpg"
    assert shown(f"{names}/in/images").startswith("/")
    assert digest("labels/train.csv", image_root="in/images")


def test_rows_of_a_frame(names):
    """Relative paths of a DataFrame start in the working directory."""
    frame = pd.read_csv("in/train.csv")
    source, _ = open_source(frame, ConvertOptions(image_root="in/images"))
    assert source.detection.rows[1].subject == "in/images/3.jpg"
    assert source.detection.found_by_name == 6
    result = recordgen.check(frame, image_root="in/images", **QUIET)
    assert result.dataset.rows.adjusted == {"found_by_name": 6}
    assert result.dataset.examples == 6


def test_the_numbers_of_paths_found_by_name(names, stdout_of, json_of, caplog):
    """The preview, the summary, JSON and the report count paths that are not exact."""
    (names / "in/train.csv").write_text("path,label\n0.jpg,a\n1,a\n2.PNG,b\n3.jpg,b\n")
    arguments = ["in/train.csv", "--image-root", "in/images", "--lint=-ALL"]
    shown = stdout_of("convert", arguments[0], "out", *arguments[1:])
    assert "2 paths found below in/images " in shown
    assert "2 paths found below in/images " in caplog.text
    assert not (names / "out/findings.jsonl").exists()
    dataset = recordgen.read_dataset("out")
    assert dataset.rows.adjusted == {"found_by_name": 2}
    assert dataset.options["image_root"] == "in/images"
    answer = json_of("check", *arguments)
    assert answer["detection"]["found_by_name"] == 2
    assert answer["detection"]["image_root"] == "in/images"


def test_the_root_is_listed_once(names):
    """Detection, preview and conversion list the root once; without the option, nobody does."""
    with opened("os.scandir") as listed:
        recordgen.check("in/train.csv", image_root="in/images", **QUIET)
    assert listed.count("in/images/") == 1
    (names / "in/train.csv").write_text("images/0.jpg,a\nimages/1.jpg,b\n")
    with opened("os.scandir") as listed:
        recordgen.check("in/train.csv", **QUIET)
    assert "in/images/" not in listed


def test_workers_list_again(names):
    """A root reaches a worker without its list of names."""
    root = ImageRoot("in/images")
    assert root.tree.files
    data = pickle.dumps(root)
    assert b"0.jpg" not in data
    assert list(pickle.loads(data).find("0", "a.csv")) == ["0.jpg"]
    source, options = open_source("in/train.csv", ConvertOptions(image_root="in"))
    reader = RowReader(options)
    copy, files = pickle.loads(pickle.dumps((reader, source.files)))
    assert [*copy.read_all(files)] == [*reader.read_all(source.files)]


def test_rejects(names, make_pictures):
    """A missing file is missing, and a path that fits two files names both."""
    make_pictures("images/5.png")
    with (names / "in/train.csv").open("a") as file:
        file.write("7,cat\n")
    result = recordgen.check("in/train.csv", image_root="in/images", **QUIET)
    found = {item.line: item for item in result.rejects}
    codes = {line: item.code for line, item in found.items()}
    assert codes == {7: "ambiguous_path", 8: "missing_file"}
    assert "images/5.jpg or images/5.png" in found[7].message
    assert found[7].uri == "5"


def test_a_lost_box_rejects_its_image(names):
    """Rejected lines belong to the image that they mean, so no false background is taught."""
    (names / "in/boxes.csv").write_text(
        "image_id,label,xmin,ymin,xmax,ymax\n0,cat,0.1,0.1,0.5,0.5\n0,cat,0.1,x,0.5,0.5\n"
        "1,cat,0.1,0.1,0.5,0.5\n"
    )
    result = recordgen.check("in/boxes.csv", image_root="in", **QUIET)
    assert [item.code for item in result.rejects] == ["incomplete", "bad_annotation"]
    assert result.dataset.examples == 1


def test_all_images_of_a_declared_row_start_at_the_root(names):
    """Each image of a declared row is looked for below the root."""
    files = {
        "pairs.csv": "left,right,same\n0,1,no\n2,2.png,yes\n3,9,no\n",
        "one.csv": "photo,same\n0,no\n2.png,yes\n",
    }
    write_files(names / "in", files)
    schema = {"left": "image", "right": "image", "same": "label"}
    result = recordgen.check("in/pairs.csv", image_root="in/images", schema=schema, **QUIET)
    assert result.dataset.examples == 2
    assert result.dataset.rows.adjusted == {"found_by_name": 5}
    assert [item.code for item in result.rejects] == ["missing_file"]
    schema = {"photo": "image", "same": "label"}
    one = recordgen.check("in/one.csv", image_root="in/images", schema=schema, **QUIET)
    assert one.dataset.examples == 2


def test_append_and_resume(names, make_pictures):
    """New rows may lie below another root; a finished run is recognised."""
    made = recordgen.convert("in/train.csv", "out", image_root="in/images", **QUIET)
    again = recordgen.convert("in/train.csv", "out", resume=True, image_root="in/images", **QUIET)
    assert again.unchanged
    make_pictures("new/9.png")
    (names / "in/more.csv").write_text("image_id,label\n9,dog\n")
    more = recordgen.convert("in/more.csv", "out", append=True, image_root="in/new", **QUIET)
    assert more.dataset.examples == made.dataset.examples + 1
    old = recordgen.convert("in/train.csv", "out", append=True, image_root="in/images", **QUIET)
    assert old.dataset.rows.existing == 6


# source, options
REFUSALS = [
    ("in/train.csv", {"image_root": "nowhere"}),
    ("in/train.csv", {"image_root": "in/train.csv"}),
    ("in/train.csv", {"image_root": "gs://user:word@bucket/a?b"}),
    ("in/train.csv", {"image_root": "in", "task": "tabular"}),
    ("in", {"image_root": "in"}),
]


@pytest.mark.parametrize(("source", "options"), REFUSALS)
def test_refusals(names, source, options):
    """The option must name files, and be one for images in lines."""
    with pytest.raises(UsageError, match="image_root"):
        Reading(source, **options)


@pytest.mark.parametrize(
    ("task", "file", "label"),
    [("text_classification", "1.txt", "good"), ("video_classification", "1.mp4", "run,0,1")],
)
def test_files_of_other_tasks(task, file, label, tmp_path):
    """Texts and videos lie below the folder, too; their paths must be exact."""
    write_files(tmp_path, {f"files/{file}": "a text", "a.csv": f"TRAIN,{file},{label}\n"})
    [row] = Reading(tmp_path / "a.csv", task=task, image_root=tmp_path / "files").rows
    assert row.uri == f"files/{file}"


def test_object_stores_are_listed(names):
    """A local CSV of names, and images in a bucket."""
    for number in range(6):
        data = (names / f"in/images/{number}.jpg").read_bytes()
        storage.write_bytes(f"memory://names/a/{number}.jpg", data)
    result = recordgen.check(
        "in/train.csv", image_root="memory://names", columns="path=image_id", **QUIET
    )
    assert result.dataset.examples == 6
    assert result.dataset.rows.adjusted == {"found_by_name": 6}


def test_web_servers_are_not_listed(names, capsys):
    """Below a URL, paths are exact."""
    asked = []

    async def answer(request):
        asked.append(request.path)
        file = names / "in" / request.path.strip("/")
        if not file.is_file():
            raise web.HTTPNotFound
        return web.Response(body=file.read_bytes())

    (names / "in/train.csv").write_text("path,label\n0.jpg,a\n1,a\n")
    with serving(answer) as url:
        code = cli.main(["check", "in/train.csv", "--image-root", f"{url}/images", "--lint=-ALL"])
    assert code == 1
    assert "1 usable, 1 rejected" in capsys.readouterr().out
    assert {path for path in asked if path != "/images/0.jpg"} == {"/images/1"}


def test_a_table_of_names_says_which_columns_mean_its_images(names, tmp_path):
    """With the root alone, a table of unknown columns stays an error, which names them."""
    source = write_files(tmp_path, {"dogs.csv": "id,breed\n0,dingo\n1,boxer\n"}) / "dogs.csv"
    with pytest.raises(UsageError, match="path=id,label=breed"):
        Reading(source, image_root="in/images")


# --- where missing files may be, and slips in paths -----------------------------------------------


def hint(folder, files, *uris, usable=0):
    """Return the hint for rows of ``labels.csv`` that name missing files, beside usable ones."""
    write_files(folder, dict.fromkeys(files, ""))
    source = str(folder / "labels.csv")
    rejects = [Reject(source, 1, uri, "missing_file", "no such file") for uri in uris]
    return missing_hint(rejects, len(rejects) + usable)


def test_without_a_file_of_that_name_there_is_no_hint(tmp_path):
    """Nor for an import file whose folder cannot be listed, nor if most files are there."""
    assert hint(tmp_path, [], "x/2.jpg") == hint(tmp_path, [], "x\\2.jpg") == Hint()
    assert hint(tmp_path, [], "2.jpg").text
    assert hint(tmp_path, [], "2.jpg", usable=1) == Hint()
    assert hint(tmp_path, [], *(f"{n}.jpg" for n in range(1001)), usable=1001) == Hint()
    elsewhere = Reject("https://a.example/labels.csv", 1, "1.jpg", "missing_file", "")
    assert missing_hint([elsewhere], 1) == Hint()


# files, uris, root
FOLDERS = [
    (["images/1.jpg", "images/2.JPG"], ["1", "2"], "images/"),
    (["a/b/1.jpg", "a/c/2.jpg"], ["1.jpg", "2.jpg"], "a/"),
    (["1.jpg"], ["1"], ""),  # beside the import file
    (["my photos/1.jpg"], ["1"], "my photos/"),
    (["../Img/a/1.jpg"], ["1.jpg"], None),  # only below the import file's folder
    (["x/1.jpg", "y/1.jpg"], ["/home/me/x/1.jpg", "/home/me/y/1.jpg"], ""),
    (["z/x/1.jpg"], ["x/1.jpg"], "z/"),
    (["1.png"], ["1.jpg"], ""),  # another suffix
    (["Images/A.jpg"], ["images\\a.JPG"], "Images/"),  # another letter case
    (["a/1.jpg", "b/1.png"], ["1.jpg"], "a/"),  # only one has that name
    (["a.xml"], ["a.jpg"], None),  # only labels
    (["a/1.jpg"], ["1.jpg#0", "1.jpg_Fish"], None),  # no suffixes
    (["a/1.mp4"], ["1.mp4"], None),  # no images
    (["a/1.jpg", "b/1.jpg"], ["1.jpg"], None),
    ([], ["1.jpg"], None),
]


@pytest.mark.parametrize(("files", "uris", "root"), FOLDERS)
def test_the_folder_is_proposed(files, uris, root, tmp_path):
    """Each file is named, and their folder, which is written like the import file's."""
    folder = tmp_path / "in"
    folder.mkdir()
    expected = "" if root is None else f"{posixpath.normpath(folder / root)}/"
    found = hint(folder, files, *uris)
    assert found.root == expected
    assert (f"{uris[0]} may be {''.join(files[:1])}" in found.text) == (root is not None)


def test_the_folder_above_is_proposed_for_several_import_files(tmp_path):
    """Each file's images are beside it; below the folder of all, one name means one image."""
    splits = {"1.jpg": "train", "2.jpg": "train", "3.jpg": "valid"}
    write_files(tmp_path / "in", {f"{at}/images/{name}": "" for name, at in splits.items()})
    places = {name: f"{tmp_path}/in/{at}/_annotations.csv" for name, at in splits.items()}
    rejects = [Reject(at, 1, name, "missing_file", "") for name, at in places.items()]
    assert missing_hint(rejects, 3).root == f"{tmp_path}/in/"
    lost = [item._replace(uri=f"none/{item.uri}.jpg") for item in rejects[:1]]
    assert not missing_hint([*rejects, *lost], 4).root
    write_files(tmp_path / "in", {"valid/images/1.jpg": ""})
    assert not missing_hint(rejects, 3).root


# lines, columns
COMMANDS = [
    ("id,breed\n{},dingo\n{},boston bull\n{},dingo\n", "path=id,label=breed"),
    ("image,breed\n{},dingo\n{},boston bull\n{},dingo\n", "path=image,label=breed"),
    ("id,age,breed\n{},3,dingo\n{},5,boston\n{},3,dingo\n", "path=id,label=breed"),
    (
        "image_id,kind,bbox_x,bbox_y,w,h\n{0},a,1,2,3,4\n{0},b,5,6,7,8\n{1},a,1,1,2,2\n{2},a,1,2,3,4\n",
        "path=image_id,label=kind,xywh=bbox_x|bbox_y|w|h",
    ),
]


@pytest.mark.parametrize(("lines", "columns"), COMMANDS)
@pytest.mark.parametrize("form", ["{:04x}", "{:04d}"])
def test_the_whole_command_is_proposed(lines, columns, form, tmp_path, make_pictures):
    """A CSV of names that is refused is read with the options that the message proposes."""
    names = [form.format(n) for n in (5, 77, 4000)]
    make_pictures(*(f"train/{name}.jpg" for name in names))
    source = write_file(tmp_path / "in/labels.csv", lines.format(*names))
    refused = refusal(recordgen.check, source)
    root = f"{tmp_path}/in/train/"
    assert refused.options == {"columns": columns, "image_root": root}
    rows = Reading(source, columns=columns, image_root=root).rows
    assert [*dict.fromkeys(row.uri for row in rows)] == [f"train/{name}.jpg" for name in names]


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
    path = write_file(tmp_path / "a.csv", b"text,label\n" + text)
    with pytest.raises(SourceError, match=rf"a.csv:2: .*encoding.* {encoding}"):
        detect([ImportFile(str(path))], ConvertOptions())
    path.write_bytes(text)
    with pytest.raises(TooManyRejectsError, match=rf"3 of 3 rows, .*encoding.* {encoding}"):
        recordgen.convert(path, tmp_path / "out")
