# ruff: noqa: E501 - tables with a case on each line
"""Files and folders in other tools' formats are errors with a remedy, in every command."""

import gzip
import io
import json
import pickle
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordgen.core.records import RECORDS
from recordgen.errors import SourceError
from recordgen.formats.detect import detect
from recordgen.formats.foreign_formats import of_file, of_folder
from recordgen.formats.import_file import find_import_files
from recordgen.formats.json_values import key_paths
from recordgen.options import ConvertOptions
from recordgen.rejects import OddLine
from tests.conftest import error_of, write_file
from tests.formats.sources import write_files
from tests.rows import read_rows


def as_json(value):
    return json.dumps(value).encode()


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            # At 7:48 the time in the header is a ">", like the end of a tag.
            info = zipfile.ZipInfo(name, (2026, 1, 1, 7, 48, 0))
            archive.writestr(info, "TRAIN,a.jpg,cat\n")
    return file.getvalue()


COCO_RESULTS = [{"image_id": 42, "category_id": 18, "bbox": [10, 20, 30, 40], "score": 0.9}]
TFRECORDS = b"".join(b"".join(RECORDS.frame([b"an example"])) for _ in range(3))

# file, content, name of the format
FILES = [
    ("a.txt", b"0 0.5 0.5 .25 1\n1 0.4 0.4 0.1 0.1\n", "YOLO labels"),
    ("a.ndjson", b'{"type": "dataset", "task": "detect"}\n', "Ultralytics' NDJSON"),
    ("_annotations.txt", b"a b.jpg 4,5,8,10,1 4.5,5,8,10,0\n", "YOLO Keras"),
    ("a.xml", b"<?xml version='1.0'?><catalog/>", "XML"),
    ("a-00000-of-00001", TFRECORDS, "a TFRecord file"),
    ("a.csv.gz", gzip.compress(b"TRAIN,a.jpg,cat\n"), "a file packed with gzip"),
    ("a.csv", zipped("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook"),
    ("mnist.npz", zipped("x_train.npy"), "a NumPy file"),
    ("a.mp4", b"\0\0\0\x20ftypisom", "a video"),
    ("a.h5", b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file"),
    ("data_batch_1", pickle.dumps({b"data": [1]}), "a Python pickle"),
    ("a.mat", b"MATLAB 5.0 MAT-file, Platform: GLNXA64", "a MATLAB file"),
    ("a.db", b"SQLite format 3\0\x10\0", "a SQLite database"),
    ("a.dcm", bytes(128) + b"DICM\2\0", "a DICOM file"),
    ("a.csv", b"<!DOCTYPE HTML><html>", "a web page"),
    ("a.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF", "an image"),
    ("a.label", b"DESC:manner How did it begin ?\nHUM:ind Who was first ?\n", "a label, a blank"),
    ("a.txt", b"__label__praise Good, and cheap.\n__label__price Dear.\n", "a label, a blank"),
    ("a.txt", b"__label__praise __label__price Good.\n" * 2, "several labels"),
    ("a9a", b"-1 3:1 11:0.5\n+1 7:1\n", "LIBSVM"),
    ("a.vw", b"1 |f price:.23 sqft:.25 2006\n-1 |f price:.18\n", "Vowpal"),
    ("movies.dat", b"1::Toy Story, The (1995)::Animation|Comedy\n" * 2, "MovieLens"),
    ("a.txt", "6551_!_101_!_文化_!_京城博物馆,马\n6552_!_102_!_体育_!_比赛\n".encode(), "several signs"),
    ("a.txt", b"1 +++$+++ It is cold.\n2 +++$+++ It is late.\n", "several signs"),
    ("a.csv", b"size;price;kind\n1,5;2,25;a\n2,5;3,25;b\n", "a decimal comma"),
    ("a.csv", b"-DOCSTART-,O\n,O\nCheck,O\n", "tokens and their tags"),
    ("a.csv", b"id,word,pos,tag\n0,York,NNP,B-geo\n0,is,VB,O\n", "tokens and their tags"),
    ("a.lst", b"1\tAnna\tB-PER\tO\n2\tflew\tO\tO\n", "tokens and their tags"),
    ("a.csv", b"NAME,R,G,B\nsky,0,0,255\nroad,9,9,9\n", "a list of classes"),
    ("a.dta", b"<stata_dta><header><release>118</release>", "a program for statistics"),
    ("a.orc", b"ORC\n\x12\n\x04\x08\x05P\0\x1f", "an ORC file"),
    ("a.avro", b"Obj\x01\x04\x14avro.codec\x08null", "an Avro file"),
    ("a.csv", b"id,tokens,tags\n0,\"['Anna', 'flew']\",\"['B-PER', 'O']\"\n", "their tags"),
    ("a.jsonl", as_json({"text": "Anna flew", "label": [[0, 4, "PER"]]}), "doccano"),
    ("a.jsonl", as_json({"text": "Anna", "ents": [{"label": "PER", "start": 0}]}), "doccano"),
    ("a.jsonl", as_json({"cats": {"good": 1.0, "bad": 0.0}, "text": "It is cold."}), "a score"),
    ("a.json", as_json([["Anna flew", {"entities": [[0, 4, "PER"]]}]]), "spaCy"),
    ("a.txt", b"2\nBald Male \n1.jpg -1  1\n2.jpg  1 -1\n", "its count"),
    ("a.txt", b"2\nimage_name  kind\na/1.jpg   1\na/2.jpg   2\n", "its count"),
    ("a.txt", b"a/1.jpg\n1\n5 6 20 15\na/2.jpg\n1\n5 6 20 15\n", "a list of images"),
    ("a.csv", b"image,boxes\n1.jpg,\"[{'bbox': [1, 2, 3, 4]}]\"\n", "lists of objects"),
    ("a.csv", b'image,label,Box_2D\n1.jpg,cat,"[1, 2, 3, 4]"\n', "the order of Gemini"),
    ("a.jsonl", as_json({"image": "1.jpg", "Box_2D": [1, 2, 3, 4]}), "the order of Gemini"),
    ("a.jsonl", as_json({"image": "1.jpg", "at": [{"box_2d": [1, 2, 3, 4]}]}), "the order of Gemini"),
    ("a.jsonl", as_json({"words": ["Anna", "flew"], "tags": ["B-PER", "O"]}), "their tags"),
    ("a.json", as_json([{"paragraphs": [{"sentences": [{"tokens": []}]}]}]), "spaCy"),
    ("a.tsv", b"Aspirin\tB\nhelps\tO\nme\tO\n", "tokens and tags without"),
    ("a.txt", b"Anna\tperson-actor\nflew\tO\nto\tO\n", "tokens and tags without"),
    ("a.conll", b"#begin document (a); part 0\na 0 0 Anna NNP\n", "CoNLL-U"),
    ("a.txt", b"7|t|Aspirin helps.\n7|a|It does.\n7\t0\t7\tAspirin\tChemical\tD1\n", "PubTator"),
    ("a.csv", b"ImageId,ClassId,EncodedPixels\n1.jpg,3,1 2 5 2\n", "runs of pixels"),
    ("a.csv", b'ImageId,PolygonWKT\na1,"POLYGON ((1 2, 3 4))"\n', "WKT"),
    ("a.geojson", as_json({"type": "FeatureCollection", "features": []}), "GeoJSON"),
    ("a.odgt", as_json({"ID": "a", "gtboxes": [{"tag": "person", "fbox": [1, 2, 3, 4]}]}), "CrowdHuman"),
    ("a.json", as_json([{"name": "a.jpg", "labels": [{"box2d": {"x1": 1}}]}]), "BDD100K"),
    ("a.ndjson", as_json({"data_row": {"external_id": "a.jpg"}, "projects": {}}), "Labelbox"),
    ("a.json", as_json([{"task_id": "1", "response": {"annotations": [{"left": 1}]}}]), "Scale"),
    ("a.manifest", as_json({"source-ref": "s3://b/1", "a": 0, "a-metadata": {"class-name": "b"}}), "SageMaker"),
    ("a.json", as_json({"project": {"pid": "1"}, "config": {}}), "VIA 3"),
    ("a-export.json", as_json({"name": "a", "securityToken": "b", "assets": {}}), "VoTT"),
    ("a.sgm", b'<!DOCTYPE lewis SYSTEM "lewis.dtd">\n<REUTERS>\n', "XML"),
    ("a.txt", b"It is cold .@neutral\nGood , and cheap .@positive\nIt is late .@neutral\n", "behind an @"),
    ("a.json", as_json({"1.jpg": "cat", "2.jpg": "dog"}), "a label for each file"),
    ("a.json", as_json({"version": "1", "data": [{"text": "It is cold.", "label": "a"}]}), "rows in a list"),
    ("a.jsonl", as_json({"messages": [{"role": "user", "content": "Hello"}]}), "language models"),
    ("a.jsonl", as_json({"text": "It is cold.", "label": {"id": 0, "name": "a"}}), "labels that are objects"),
    ("a.yml", b"nlu:\n- intent: greet\n  examples: hello\n", "YAML"),
    ("a.lst", b"0\t1.000000\ta/1.jpg\n1\t0.000000\tb/2.jpg\n", "MXNet"),
    ("a.txt", b"379 1.png COVID-19 rsna\n380 2.png normal rsna\n", "blanks between"),
    ("a.csv", b"id,class,segmentation\na_1,bowel,28094 3 28358 7\n", "runs of pixels"),
    ("a.csv", b"filename,fold,kind\n1.wav,1,dog\n2.wav,2,cat\n", "sounds"),
]  # fmt: skip


def read(files):
    return read_rows(detect(files, ConvertOptions()).options, *files)


def refusal(source):
    """Return the message of the error that a file or folder causes."""
    return str(error_of(SourceError, read, find_import_files(str(source))))


@pytest.mark.parametrize(("name", "data", "format_"), FILES, ids=[each[2] for each in FILES])
def test_files_are_named(name, data, format_, tmp_path):
    """The error names the file and its format."""
    path = write_file(tmp_path / name, data)
    message = refusal(path)
    assert message.startswith(str(path))
    assert format_ in message.partition(": this looks like ")[2].split(";")[0]


ASSET = {"asset": {"path": "file:/photos/{}.jpg"}, "regions": [{"tags": ["cat"]}]}
DARWIN = {"item": {"name": "0.jpg", "slots": [{"slot_name": "0"}]}, "annotations": []}
# Documents of tools that no table names: alone, and beside images by class.
DOCUMENTS = {
    "VoTT": {"a-asset.json": as_json(ASSET)},
    "Supervisely": {"meta.json": b'{"classes": [{"title": 1}], "projectType": "images"}'},
    "Darwin": {"0.json": as_json(DARWIN)},
    "Label Studio": {"a.csv": b"annotation_id,choice,image\n7,cat,/data/upload/1/a.jpg\n"},
    "results of COCO": {"results.json": as_json(COCO_RESULTS)},
    "VoTT's images": {"cat/aa1.jpg": b"", "dog/bb2.jpg": b"", **{f"{name}.json": as_json(ASSET).replace(b"{}", name.encode()) for name in ("aa1", "bb2")}},
    "GeoJSON beside classes": {"a/aa1.jpg": b"", "b/bb2.jpg": b"", "a.geojson": as_json(["aa1.jpg", "bb2.jpg"])},
    "paths of one name": {"clips/0/20.jpg": b"", "clips/1/20.jpg": b"", "a.json": as_json({"file": ["0/20.jpg", "1/20.jpg"]})},
    "names with commas": {"a/1,aa.jpg": b"", "b/2,bb.jpg": b"", "a.odgt": as_json(["1,aa", "2,bb"])},
    "Supervisely's images": {"cat/a.jpg": b"", "dog/b.jpg": b"", "ann/a.jpg.json": b"{}", "ann/b.jpg.json": b"{}"},
    "YOLO's labels": {"a/1.txt": "0 0.5 0.5 0.2 0.2\n", "b/2.txt": "1 0.5 0.5 0.2 0.2\n"},
    "an import file": {"a/1.txt": "x", "b/1.txt": "y", "labels.csv": "a/1.txt,q"},
    "a folder in a class": {"a/1.txt": "x", "b/1.txt": "y", "b/more/2.txt": "z", "a/2.txt": "x"},
    "a split beside a class": {"train/a/1.txt": "x", "train/b/1.txt": "y", "c/1.txt": "z"},
    "captions of images": dict.fromkeys(("a/1.jpg", "a/1.txt", "b/1.jpg", "b/1.txt"), "x"),
    "Darwin's images": {"cat/a.jpg": b"", "dog/b.jpg": b"", "annotations/0.json": as_json(DARWIN)},
}  # fmt: skip


@pytest.mark.parametrize("files", DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_of_other_tools_stop(files, tmp_path):
    """What is no known form is not read, and no image beside it becomes one of a class."""
    root = write_files(tmp_path, files)
    assert refusal(root if len(files) > 1 else root / next(iter(files)))


IMAGES = {"images/a.jpg": b"", "images/b.jpg": b""}

# files of a folder, name of the format, file that shows it
FOLDERS = [
    ({"Split-train/data_tfrecord-00000-of-00001.gz": b""}, "a TFRecord file", "Split-train/data_"),
    ({"a-train.array_record-00000-of-00001": b""}, "an ArrayRecord file", "a-train.array"),
    ({"train/data-00000-of-00001.arrow": b""}, "an Arrow stream", "train/data-0"),
    ({"x/a/1.arff": b"", "x/b/2.arff": b""}, "ARFF", "x/a/1.arff"),
    ({"en-train.conllu": b"", "README.txt": b""}, "tags behind a slash", "en-train.conllu"),
    ({"bed/1.wav": b"", "yes/2.wav": b""}, "sounds", "bed/1.wav"),
    ({**IMAGES, "annotations/a.json": b'{"version": "2.0", "item": {"slots": []}}'}, "V7 Darwin", "annotations/a.json"),
    ({"photos.tar.gz": b"", "LICENSE": b""}, "a tar archive", "photos.tar.gz"),
    ({"X.npy": b"", "y.npy": b""}, "a NumPy file", "X.npy"),
    ({"data.mdb": b"", "lock.mdb": b""}, "an LMDB database", "data.mdb"),
    ({"train/shard.0.mds": b"", "train/index.json": b"{}"}, "MDS shards", "train/shard.0.mds"),
    ({"data_batch_1": b"", "batches.meta": b""}, "a Python pickle", "data_batch_1"),
    ({"saved_model.pb": b"", "variables/a": b""}, "a TensorFlow SavedModel", "saved_model.pb"),
    ({"a.pos": b"A", "a.neg": b"B"}, "a file of texts for each class", "a.pos"),
    ({f"{at}/{it}.txt": b"A" for at in "ab" for it in ("test_text", "test_labels")}, "texts and their labels", "a/test_text.txt"),
    ({"news/a.txt": b"A", "news/a.ann": b"", "mail/b.txt": b"B"}, "brat's", "news/a.ann"),
    ({"t10k-images-idx3-ubyte.gz": b""}, "the IDX files of MNIST", "t10k"),
    ({"gt/gt.txt": b"1,-1,0,4,4,8,1,3,1.0\n"}, "MOTChallenge", "gt/gt.txt"),
    ({**IMAGES, "a/b.json": b'{"categories": {"label": {}}, "items": []}'}, "Datumaro", "a/b.json"),
    ({**IMAGES, "a-export.json": b'{"securityToken": ""}'}, "VoTT", "a-export.json"),
    ({**IMAGES, "ann/a.jpg.json": b"{}", "meta.json": b"{}"}, "Supervisely", "ann/a.jpg.json"),
    ({**IMAGES, "a.json": b'{"annotations": [{"predicted_iou": 1}]}'}, "Segment", "a.json"),
    ({"s1/img1/1.jpg": b"", "s1/gt/gt.txt": b"1,1,5,6,20,15,1,1,1\n"}, "MOTChallenge", "s1/gt/gt"),
    ({**IMAGES, "annotations/a.txt": b"5,6,2,1,1,4,0,0\n"}, "labels of VisDrone", "annotations/a"),
    ({**IMAGES, "gt/gt_a.txt": "\ufeff5,6,25,6,25,21,5,21,Shop\n".encode()}, "lines of four corners and a text", "gt/gt_a"),
    ({"WIDER_val/images/0--A/a.jpg": b"", "split/wider_face_val_bbx_gt.txt": b"0--A/a.jpg\n1\n"}, "WIDER FACE", "split/wider_face_val_bbx_gt.txt"),
    ({"d/a_leftImg8bit.png": b"", "gtFine/a_gtFine_polygons.json": b"{}"}, "Cityscapes", "gtFine/"),
    ({"train/good/0.png": b"", "test/bad/0.png": b"", "test/good/0.png": b"", "ground_truth/bad/0_mask.png": b"", "readme.txt": b"The MVTec AD"}, "MVTec AD", "readme"),
    ({"Image_01L.jpg": b"", "Image_01L_1stHO.png": b"", "Image_01L_2ndHO.png": b""}, "CHASE_DB1", "_1stHO"),
    ({**IMAGES, "train/digitStruct.mat": b"MATLAB 7.3 MAT-file"}, "SVHN", "train/digitStruct.mat"),
    ({**IMAGES, "joints.mat": b"MATLAB 5.0 MAT-file"}, "Leeds Sports Pose", "joints.mat"),
    ({"train/XR/p1/s1_positive/1.png": b"", "train_labeled_studies.csv": b"train/XR/p1/s1_positive/,1\n"}, "MURA", "train_labeled"),
    ({"x_train.txt": b"It is cold.\n", "y_train.txt": b"en\n", "train-text.txt": b""}, "texts and their labels", "x_train.txt"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "format_", "evidence"), FOLDERS)
def test_folders_are_named(files, format_, evidence, tmp_path):
    """A folder is recognised by its listing, or by its first JSON document."""
    message = refusal(write_files(tmp_path, files))
    assert message.startswith(f"{tmp_path}/: this looks like {format_}")
    assert evidence in message.partition("); ")[0]


# other files that a folder of images by label may contain
PLAIN_FOLDERS = [
    {"cat/a.jpg": b"", "dog/a.jpg": b"", "dog/a.txt": b"a caption"},
    {"bottles/a.jpg": b"", "labels/b.jpg": b""},
    {"cat/a.jpg": b"", "dog/b.jpg": b"", "about.json": b'{"license": "CC", "images": 2}'},
    {"cat/a.jpg": b"", "dog/b.jpg": b"", "c.zip": b"", "a.xml": b"<?xml version='1.0'?><a/>"},
    {"annotations/a.jpg": b"", "label_2/b.jpg": b"", "label_2/b.txt": b"a caption of 2 words"},
]


@pytest.mark.parametrize("files", PLAIN_FOLDERS)
def test_folders_of_images_stay(files, tmp_path):
    """Other files among images do not make a foreign format."""
    found = find_import_files(str(write_files(tmp_path, files)))
    rows = [item for item in read(found) if not isinstance(item, OddLine)]
    assert {row.uri for row in rows} == {name for name in files if name.endswith(".jpg")}


ODD_NAMES = ["labels", "label_2", "annotations", "gt", "det", "image_2",
             "images", "variables", "a.zarr", "tfrecord", "data.mdb", "saved_model.pb",
             "pickle", "meta", "train", "test", "wider_face"]  # fmt: skip


@given(st.data())
def test_class_folders_match_no_tool(data):
    """Class folders with captions beside images match no tool, whatever their names are."""
    folders = data.draw(st.lists(st.sampled_from(ODD_NAMES), min_size=1, unique=True))
    stems = data.draw(st.lists(st.sampled_from(["a", "gt", "0", *ODD_NAMES]), min_size=1))
    captions = [f"{folder}/{stem}.txt" for folder in folders for stem in stems]
    images = [f"{name}.jpg" for name in captions]
    text = data.draw(st.sampled_from([b"", b"a red car", b"cat", b"5", b"1,2,3", b"Car 1 2"]))
    assert of_folder(captions, lambda _: text, images=images) is None


# JSON text, perhaps cut off, and its keys
KEYS = [
    ('{"images": [{"id": 1, "file_na', {"images", "images.id"}),
    ('[{"a": {"b": "c: {"}}, {"d": 1}]', {"a", "a.b", "d"}),
    ('{"a": 1}\n{"b": 2}', {"a"}),
    ('{"a\\"b": "x\\\\", "c": "cut: {', {'a\\"b', "c"}),
    ('{"a":{"b":{"c":{"d":{"e":{"f":1}}}}}}', {"a", "a.b", "a.b.c", "a.b.c.d", "a.b.c.d.e"}),
    ("]}:,", set()),
]


@pytest.mark.parametrize(("text", "keys"), KEYS)
def test_key_paths(text, keys):
    """The keys of the first value are found as far as the text goes; texts are never keys."""
    assert key_paths(text) == keys


@given(st.binary(max_size=300))
def test_arbitrary_bytes_cause_no_error(data):
    """Looking for foreign formats survives any bytes."""
    for begin in (b"", b"{", b"[{", b"<?xml", b"\x1f\x8b\x08\x00"):
        of_file(begin + data)
