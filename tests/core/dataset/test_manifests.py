"""``dataset.json`` from elsewhere: whatever was changed, commands end without a traceback."""

import copy
import json
import re
import shutil

import pytest

from recordgen.cli import main
from recordgen.core.dataset.manifest import read_dataset
from recordgen.errors import SourceError
from tests.conftest import convert_lines, write_noise

IMAGES = ["TRAIN,a.png,cat", "TEST,b.png,dog"]
TABLE = ["split,size,colour", "TRAIN,1.5,red", "TRAIN,2.5,blue", "TEST,3,red"]

# task, import file, options
INPUTS = [("image_classification", IMAGES, {}), ("tabular", TABLE, {"columns": "target=colour"})]

# Values of any type, and some that are too large or mean something else.
WRONG = [
    *(None, True, -1, 2**70, 1.5, "", "x\0", "../../x", "\ud800", "C:\\x"),
    *([], [None], {}, {"x": {}}),
]


def changes(value, path=()):
    """Yield each place in a JSON value with each wrong value; ``...`` removes it."""
    if not isinstance(value, dict | list):
        return
    for key, item in value.items() if isinstance(value, dict) else enumerate(value[:1]):
        for wrong in (..., *WRONG):
            if wrong is ... or type(wrong) is not type(item) or wrong != item:
                yield (*path, key), wrong
        yield from changes(item, (*path, key))


def changed(value, path, wrong):
    """Return a copy of a JSON value with another value at one place."""
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if wrong is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = wrong
    return value


@pytest.fixture(scope="module", params=INPUTS, ids=lambda case: case[0])
def output(request, tmp_path_factory):
    task, lines, options = request.param
    folder = tmp_path_factory.mktemp(task)
    write_noise(folder, "ab", 8, 8)
    return convert_lines(folder, lines, task=task, **options)


EXPORTED = ("folder", "automl", "coco", "yolo", "parquet", "webdataset")
DOORS = [
    *(f"{command} {{place}}" for command in ("report", "export croissant", "export lineage")),
    "diff {place} {other}",
    "inspect {place}",
    "inspect {place} --to {place}/../seen",
    "check {place}",
    *(f"export {name} {{place}}" for name in ("tfds", "tfdv")),
    *(f"export {name} {{place}} --to {{place}}/../{name}" for name in EXPORTED),
]
TRIED = 11  # changes that are no error in read_dataset: one in so many goes to the next command


def test_any_change_of_a_field_is_an_error_or_harmless(output, tmp_path, capsys):
    """Whatever stands in a field, commands refuse the file or write nothing outside of it."""
    values = json.loads((output / "dataset.json").read_text())
    copied = tmp_path / "out"
    shutil.copytree(output, copied)
    accepted, beside = 0, {it.name for it in tmp_path.parent.iterdir()}
    for path, wrong in changes(values):
        (copied / "dataset.json").write_text(json.dumps(changed(values, path, wrong)))
        try:
            read_dataset(copied)
        except SourceError:
            continue
        accepted += 1
        if accepted % TRIED == 0:
            command = DOORS[accepted // TRIED % len(DOORS)].format(place=copied, other=output)
            assert main([*command.split(), "--json"]) in (0, 1, 2), (path, wrong)
            assert {it.name for it in tmp_path.parent.iterdir()} == beside
            for copy_ in tmp_path.iterdir():
                if copy_ != copied:
                    shutil.rmtree(copy_)
    capsys.readouterr()


# path, another value, the field in the error
ERRORS = [
    (("splits",), ..., "'splits'"),
    (("seed",), 2**70, "seed"),
    (("label_kind",), "x", "label_kind .*text, integer, none"),
    (("compression",), None, "compression"),
    (("digest",), 1, "digest"),
    (("source",), [1], "source"),
    (("warnings",), [{}], "warnings"),
    (("reencoded",), {"x": "y"}, "reencoded"),
    (("rows", "read"), -1, "read .*at least 0"),
    (("options", "seed"), {}, "option 'seed'"),
    (
        ("splits", "../../x"),
        {"examples": 0, "bytes": 0, "labels": {}, "shards": []},
        r"\.\./\.\./x",
    ),
    (("splits", "train", "images"), {"formats": {}, "height": [1], "width": [1, 1]}, "height"),
    (("splits",), [], ""),
    (("splits", "train", "examples"), "many", ""),
    (("splits", "train", "shards", 0, "examples"), -1, "examples .*at least 0"),
    *(
        (("splits", "train", "shards", 0, "file"), file, re.escape(repr(file)))
        for file in ("x\0", "/etc/passwd", "a/../../b", "C:\\x", "a/..", "nul", "a//b")
    ),
    (("splits", "train", "examples"), 0, "examples of split train"),
    (("splits", "train", "bytes"), 2**62, "bytes of split train"),
    (("options", "format"), 1, "option format"),
    (("options", "schema"), ["x"], "option schema"),
    (("warnings",), ["\ud800"], ""),
    (("labels",), [1], "labels"),
    (("task",), ["image_classification"], "task"),
    (("surplus",), 1, "surplus"),
    (("index", "sha256"), ..., "index .*sha256"),
    (("index", "file"), "../records.npy", "index .*records"),
    (("splits", "train", "shards", 0, "digest"), None, "digest"),
]


@pytest.mark.parametrize(("path", "wrong", "words"), ERRORS, ids=range(len(ERRORS)))
def test_an_error_names_the_file_and_the_field(output, tmp_path, path, wrong, words):
    """Each wrong value is refused by the version of the format."""
    values = json.loads((output / "dataset.json").read_text())
    (tmp_path / "dataset.json").write_text(json.dumps(changed(values, path, wrong)))
    with pytest.raises(SourceError, match=rf"dataset\.json: .*recordgen/1 .*{words}"):
        read_dataset(tmp_path)
