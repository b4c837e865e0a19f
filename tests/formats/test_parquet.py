"""Parquet with images: bytes are ranges of the file, whatever its pages look like."""

import json
import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordgen
from recordgen.errors import NothingToConvertError, SourceError
from tests.conftest import encoded, error_of, interrupt_convert, noise, run_python, tree_bytes
from tests.formats.boxes import boxes_of
from tests.formats.containers import converted, converted_each, image

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
CLASS = {"_type": "ClassLabel", "names": ["cat", "dog"]}
PLAIN = {"compression": "none", "use_dictionary": False}


def write(folder, name, columns, *, features=None, **options):
    """Write columns (name: type, values) to a file, as Hugging Face's datasets do."""
    metadata = {"huggingface": json.dumps({"info": {"features": features}})} if features else None
    schema = pa.schema([(key, kind) for key, (kind, _) in columns.items()], metadata)
    arrays = [pa.array(values, kind) for kind, values in columns.values()]
    path = folder / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, **{**PLAIN, **options})


def images(*seeds, path="x/{}.jpg"):
    return IMAGE, [{"bytes": image(seed), "path": path.format(seed)} for seed in seeds]


# How writers lay out pages: with a dictionary, several row groups, small pages, nulls, version 2.
LAYOUTS = [
    {},
    {"use_dictionary": True},
    {"row_group_size": 7},
    {"data_page_size": 1000},
    {"data_page_version": "2.0", "version": "2.6"},
    {"use_dictionary": True, "dictionary_pagesize_limit": 3000},
    {"compression": "snappy", "row_group_size": 7},
    {"compression": "zstd", "use_dictionary": True, "dictionary_pagesize_limit": 3000},
    {"compression": "gzip", "data_page_version": "2.0", "version": "2.6"},
    {"compression": "brotli"},
    {"compression": "lz4", "data_page_size": 1000},
    {"column_encoding": {"image.bytes": "DELTA_BYTE_ARRAY"}, "version": "2.6"},
]


SEEDS = [at % 20 for at in range(40)]


def can_write(options):
    return "column_encoding" not in options or int(pa.__version__.partition(".")[0]) >= 11


def test_bytes(folder):
    """Each image has its own bytes in every layout, also if images occur several times."""
    columns = {"image": images(*SEEDS), "label": (pa.int64(), [at % 2 for at in SEEDS])}
    features = {"image": {"_type": "Image"}, "label": CLASS}
    names = {}
    for at, options in enumerate(filter(can_write, LAYOUTS)):
        for split in ("train", "test"):
            names[f"{split}-{at:02}.parquet"] = split, options
            write(folder, f"{split}-{at:02}.parquet", columns, features=features, **options)
    dataset, rejects, examples = converted(folder)
    assert (rejects, list(dataset.labels)) == ({}, ["cat", "dog"])
    assert len(examples) == len(names) * len(SEEDS)
    for name, (split, options) in names.items():
        for at, seed in enumerate(SEEDS):
            found, values = examples[f"{name}/{at}/{seed}.jpg"]
            assert (found, values["image/encoded"]) == (split, [image(seed)]), options
            assert values["image/class/text"] == [[b"cat", b"dog"][seed % 2]]


def test_frames_of_pandas(folder):
    """A column of bytes under a name of images, and labels as texts."""
    frame = pd.DataFrame({"image": [image(0), image(1)], "label": ["cat", None]})
    frame.to_parquet(folder / "in/a.parquet", compression=None)
    _, rejects, examples = converted(folder, source=folder / "in/a.parquet")
    assert rejects == {}
    assert examples["a.parquet/0"][1]["image/class/text"] == [b"cat"]
    assert "image/class/text" not in examples["a.parquet/1"][1]


BOX = {"bbox": [[4, 5, 4, 5]], "category": [1]}
ENTRY = {"bbox": {}, "category": CLASS}
LISTS = pa.struct([("bbox", pa.list_(pa.list_(pa.float32()))), ("category", pa.list_(pa.int64()))])
ENTRIES = pa.list_(pa.struct([("bbox", pa.list_(pa.float64())), ("category", pa.int64())]))
ONE = [[{"bbox": [4, 5, 4, 5], "category": 1}], []]
# type of the column, its values, the feature that is declared
OBJECTS = {
    "dict of lists": (LISTS, [BOX, None], {"feature": ENTRY, "_type": "Sequence"}),
    "list of dicts": (ENTRIES, ONE, [ENTRY]),
    "large list": (pa.large_list(ENTRIES.value_type), ONE, [ENTRY]),
}


@pytest.mark.parametrize(("kind", "values", "feature"), OBJECTS.values(), ids=OBJECTS)
def test_boxes(kind, values, feature, folder):
    """COCO's boxes in pixels, with the size in the row or in the image's header."""
    columns = {"image": images(0, 1), "objects": (kind, values)}
    write(folder, "a.parquet", columns, features={"image": {"_type": "Image"}, "objects": feature})
    dataset, rejects, _ = converted(folder)
    assert (rejects, list(dataset.labels)) == ({}, ["cat", "dog"])
    width, height = noise().size
    corners = [round(value, 4) for value in (4 / width, 5 / height, 8 / width, 10 / height)]
    found = boxes_of(folder / "out")
    assert found["a.parquet/0/0.jpg"][1] == [("dog", 1, corners)]
    assert found["a.parquet/1/1.jpg"][1] == []


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_images_of_several_labels(kind, folder):
    """A column with lists of classes makes a task of several labels."""
    features = {"image": {"_type": "Image"}, "tags": {"feature": CLASS, "_type": "Sequence"}}
    columns = {"image": images(0, 1), "tags": (kind(pa.int64()), [[0, 1], []])}
    write(folder, "a.parquet", columns, features=features)
    dataset, _, examples = converted(folder)
    assert dataset.task == "image_multi_label"
    assert examples["a.parquet/0/0.jpg"][1]["image/class/text"] == [b"cat", b"dog"]
    _, rejects, examples = converted(folder, task="image_segmentation")
    assert (list(rejects), list(examples)) == (["a.parquet/0/0.jpg"], ["a.parquet/1/1.jpg"])


NAMES = ["cat", "cow", "dog"]


@pytest.mark.parametrize("feature", [{"feature": {**CLASS, "names": NAMES}}, {}])
def test_one_hot_lists(feature, folder):
    """Their classes have the names of numbers; without any, rejects say where to write them."""
    columns = {"image": images(0, 1), "label": (pa.list_(pa.int64()), [[0, 1, 1], [0, 0, 0]])}
    features = {"image": {"_type": "Image"}, "label": feature}
    write(folder, "a.parquet", columns, features=features)
    if not feature:
        error = error_of(NothingToConvertError, converted, folder)
        assert all("classes.txt" in item.message for item in error.rejects)
        (folder / "in/classes.txt").write_text("\n".join(NAMES))
    dataset, rejects, examples = converted(folder)
    assert (dataset.task, rejects) == ("image_multi_label", {})
    assert list(dataset.labels) == NAMES
    assert examples["a.parquet/0/0.jpg"][1]["image/class/text"] == [b"cow", b"dog"]
    assert not examples["a.parquet/1/1.jpg"][1].get("image/class/text")


# name: the image of a row, its label, the code of the reject
TRAPS = {
    "neither bytes nor path": ({"bytes": None, "path": None}, 0, "missing_file"),
    "a path to nothing": ({"bytes": None, "path": "none.jpg"}, 0, "missing_file"),
    "no image at all": (None, 0, "missing_file"),
    "empty bytes": ({"bytes": b"", "path": "a.jpg"}, 0, "empty_file"),
    "no image bytes": ({"bytes": b"text", "path": None}, 0, "not_an_image"),
    "no such class": ({"bytes": image(1), "path": None}, 2, "bad_annotation"),
}


def test_a_bad_row_is_a_reject_with_its_place(folder):
    """A bad row is a reject with its place; the good one before it stays."""
    features = {"image": {"_type": "Image"}, "label": CLASS}
    for at, (value, label, _) in enumerate(TRAPS.values()):
        rows = [{"bytes": image(), "path": None}, value]
        columns = {"image": (IMAGE, rows), "label": (pa.int64(), [0, label])}
        write(folder, f"{at:02}.parquet", columns, features=features)
    for name, (file, [reject], examples) in converted_each(folder, TRAPS).items():
        assert reject["code"] == TRAPS[name][2], name
        assert reject["uri"].startswith(f"{file}/1")
        assert examples == [f"{file}/0"]


LABEL = {"label": (pa.int64(), [0])}
SOUND = {"sound": (IMAGE, [{"bytes": b"RIFF", "path": None}]), **LABEL}
REFUSED = {
    "no label": ({"image": images(0), "text": (pa.string(), ["x"])}, "text"),
    "two labels": ({"image": images(0), **LABEL, "category": (pa.int64(), [0])}, "category"),
    "a label of pixels": ({"image": images(0), "label": images(1)}, "image=image,mask=label"),
    "masks beside a label": (
        {"image": images(0), "annotation": images(1), **LABEL},
        "mask=annotation",
    ),
    "two images": ({"image": images(0), "image_b": images(1), **LABEL}, "such as image=image"),
    "a mask and a label": ({"image": images(0), "mask": images(1), **LABEL}, "image, mask"),
    "sounds, as the schema says": (SOUND, "paths or texts"),
}


@pytest.mark.parametrize(("columns", "named"), REFUSED.values(), ids=REFUSED)
def test_unclear_columns_are_named(columns, named, folder):
    """Columns that leave the task open are named."""
    write(folder, "a.parquet", columns, features={"sound": {"_type": "Audio"}})
    with pytest.raises(SourceError, match=named):
        converted(folder, source=folder / "in/a.parquet")


@pytest.mark.parametrize("cut", [1, 8, 300])
def test_a_cut_file_is_named(cut, folder):
    """A file cut anywhere at its end is named."""
    write(folder, "a.parquet", {"image": images(*range(9)), "label": (pa.int64(), [0] * 9)})
    path = folder / "in/a.parquet"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(SourceError, match=r"a\.parquet"):
        converted(folder, source=path)


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_a_damaged_page_costs_the_rest_of_its_row_group(compression, folder):
    """Other row groups survive a damaged page."""
    columns = {"image": images(*range(8)), "label": (pa.int64(), [0] * 8)}
    write(folder, "a.parquet", columns, row_group_size=4, compression=compression)
    path = folder / "in/a.parquet"
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + 12] = b"\xff" * 12
    path.write_bytes(data)
    dataset, rejects, examples = converted(folder)
    assert dict(dataset.rows.rejected) == {"corrupt": 1}
    assert list(rejects) == ["a.parquet/4"]
    assert "row group 1" in rejects["a.parquet/4"]["message"]
    assert len(examples) == 4


def photos(folder, **options):
    """Write 60 photos of 300 kB in row groups of 25."""
    data = encoded(noise(500, 500), "JPEG", quality=90)
    rows = [{"bytes": data + bytes([at]), "path": f"{at}.jpg"} for at in range(60)]
    columns = {"image": (IMAGE, rows), "label": (pa.int64(), [0, 1] * 30)}
    write(folder, "a.parquet", columns, row_group_size=25, **options)
    return folder / "in/a.parquet"


def test_compressed_files_give_the_shards_of_plain_ones(folder, monkeypatch):
    """Also after an interruption, and when another file is appended; nothing stays behind."""
    (folder / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "temporary"))
    source = photos(folder)
    recordgen.convert(str(source), folder / "plain", shard_mb=1)
    photos(folder, compression="snappy")
    code, _ = interrupt_convert(str(source), folder / "out")
    assert code
    shutil.rmtree(folder / "temporary")  # an interrupted process leaves its copies
    (folder / "temporary").mkdir()
    command = ("-m", "recordgen.cli", "convert", str(source), str(folder / "out"), "--shard-mb=1")
    done = json.loads(run_python(*command, "--threads=2", "--resume", "--json").stdout)
    plain = tree_bytes(folder / "plain/Split-train")
    assert 0 < done["kept_shards"] < len(plain)
    assert tree_bytes(folder / "out/Split-train") == plain
    left = (folder / "temporary").glob("*/*")
    assert not [path for path in left if "jinja2" not in path.parent.name]
    write(folder, "b.parquet", {"image": images(0), "label": (pa.int64(), [0])}, compression="zstd")
    files = str(folder / "in/*.parquet")
    more = recordgen.convert(files, folder / "out", append=True, shard_mb=1, lint="-ALL")
    assert more.dataset.examples == 61


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.timestamp("us", tz="Not/AZone")], ids=["date", "zone"]
)
def test_a_label_that_python_has_not_costs_its_rows(kind, folder):
    """Arrow has dates and zones that Python has not: the row group is a reject, no traceback."""
    write(folder, "a.parquet", {"image": images(0), "label": (kind, [2**30])})
    error = error_of(NothingToConvertError, converted, folder)
    assert [reject.code for reject in error.rejects] == ["corrupt"]


def test_a_row_group_that_names_other_columns_is_a_reject(folder):
    """The footer's schema and its row groups may contradict each other."""
    for name in ("a", "b"):
        write(folder, f"{name}.parquet", {"image": images(0), **LABEL})
    path = folder / "in/b.parquet"
    before, _, behind = path.read_bytes().rpartition(b"bytes")
    path.write_bytes(before + b"bytez" + behind)
    _, rejects, examples = converted(folder)
    assert len(rejects) == len(examples) == 1
