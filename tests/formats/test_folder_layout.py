# ruff: noqa: E501 - tables with a case on each line
"""Folders that the option layout describes: splits, labels, masks and files of labels."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordgen
from recordgen.errors import NotUnderstoodError, UsageError
from recordgen.tables.path_layout import PathLayout
from recordgen.tasks import task_for
from tests.conftest import encoded, noise, stored_examples
from tests.formats.boxes import examples_of
from tests.formats.sources import Outcome, Reading, refusal, write_files
from tests.formats.test_pascal_voc import document

TRAIN, EVAL, TEST = "train", "eval", "test"

# public data set, one of each form; its layout; files → split and label, or second file
PUBLIC = {
    "tiny_imagenet": ("{split}/{label}/images/{name}.JPEG", {"train/n01/images/n01_0.JPEG": (TRAIN, "n01"), "train/n01/n01_boxes.txt": None, "val/images/val_0.JPEG": None}),
    "dogs_vs_cats": ("{split}/{label}.{n:digits}.jpg", {"train/cat.0.jpg": (TRAIN, "cat"), "train/dog.12.jpg": (TRAIN, "dog"), "test1/1.jpg": None}),
    "intel": ("seg_{split}/seg_{split}/{label}/{name}.jpg", {"seg_train/seg_train/sea/1.jpg": (TRAIN, "sea"), "seg_test/seg_test/sea/2.jpg": (TEST, "sea"), "seg_pred/seg_pred/3.jpg": None}),
    "eurosat": ("**/{label}/{name}.jpg", {"EuroSAT/2750/Forest/Forest_1.jpg": (None, "Forest"), "Pasture/Pasture_1.jpg": (None, "Pasture")}),
    "utkface": ("{age:digits}_{label:digits}_{race}_{time:digits}*.jpg", {"100_1_0_20170112.jpg.chip.jpg": (None, "1"), "notes.md": None}),
    "imdb": ("{split}/{label}/{n:digits}_{stars:digits}.txt", {"train/pos/1_7.txt": (TRAIN, "pos"), "test/neg/2_3.txt": (TEST, "neg"), "train/urls_pos.txt": None}),
    "20news": ("20news-bydate-{split}/{label}/{name}", {"20news-bydate-train/sci.space/50000": (TRAIN, "sci.space"), "20news-bydate-test/alt.atheism/5": (TEST, "alt.atheism")}),
    "enron": ("enron*/{label}/{name}.txt", {"enron1/ham/0001.1999-12-10.farmer.ham.txt": (None, "ham"), "enron2/spam/2.txt": (None, "spam"), "enron1/Summary.txt": None}),
    "ucf101": ("UCF-101/{label}/v_{label}_g{group:digits}_c{n:digits}.avi", {"UCF-101/Archery/v_Archery_g01_c02.avi": (None, "Archery"), "list/trainlist01.txt": None}),
    "camvid": ("{split}/{name}.png {split}annot/{name}.png", {"train/1.png": (TRAIN, "trainannot/1.png"), "val/2.png": (EVAL, "valannot/2.png"), "trainannot/1.png": None, "valannot/2.png": None, "train.txt": None}),
    "cityscapes": ("leftImg8bit/{split}/{city}/{name}_leftImg8bit.png gtFine/{split}/{city}/{name}_gtFine_labelIds.png", {"leftImg8bit/val/ulm/ulm_0_1_leftImg8bit.png": (EVAL, "gtFine/val/ulm/ulm_0_1_gtFine_labelIds.png"), "gtFine/val/ulm/ulm_0_1_gtFine_labelIds.png": None, "gtFine/val/ulm/ulm_0_1_gtFine_color.png": None}),
    "isic": ("*_Data/{name}.jpg *_GroundTruth/{name}_segmentation.png", {"ISIC-2017_Training_Data/ISIC_1.jpg": (None, "ISIC_Part1_GroundTruth/ISIC_1_segmentation.png"), "ISIC_Part1_GroundTruth/ISIC_1_segmentation.png": None}),
    "deepglobe": ("{split}/{name}_sat.jpg {split}/{name}_mask.png", {"train/1_sat.jpg": (TRAIN, "train/1_mask.png"), "train/1_mask.png": None, "valid/2_sat.jpg": "alone"}),
    "busi": ("{label}/{name}.png {label}/{name}_mask.png", {"benign/benign (1).png": (None, "benign/benign (1)_mask.png"), "benign/benign (1)_mask.png": None}),
    "coco_stuff": ("{split}*/{name}.jpg stuff_{split}*/{name}.png", {"train2017/1.jpg": (TRAIN, "stuff_train2017_pixelmaps/1.png"), "stuff_train2017_pixelmaps/1.png": None, "trainee/1.jpg": None}),
}  # fmt: skip


@pytest.mark.parametrize(("layout", "files"), PUBLIC.values(), ids=PUBLIC)
def test_a_layout_gives_splits_labels_and_second_files(tmp_path, layout, files):
    """Each file is a row as its path says, the second file of a row, or counted as skipped."""
    write_files(tmp_path, dict.fromkeys(files, b""))
    found = Reading(f"{tmp_path}/", layout=layout, split="names=no")
    task = task_for(found.options)
    seconds = {row.uri: task.stored_uris([row.uri], [row.annotation])[0][1:] for row in found.rows}
    said = {
        row.uri: (row.split, *(seconds[row.uri] or task.labels(row.annotation or "")))
        for row in found.rows
    }
    assert said == {path: row for path, row in files.items() if isinstance(row, tuple)}
    used = {*said, *(each for paths in seconds.values() for each in paths)}
    skipped = " ".join(item.message for item in found.items if hasattr(item, "message"))
    assert all(path in skipped for path in files.keys() - used)
    assert not found.rejects


# a text of a word; texts between words
TEXTS = st.text(string.ascii_letters + string.digits + " -._", min_size=1, max_size=6)
SPLITS = {"train": TRAIN, "VAL": EVAL, "testing": TEST}


@given(
    order=st.permutations(["{split}", "{label}", "{name}"]),
    between=st.lists(st.sampled_from(["/", "_", "_x_", "/images/"]), min_size=2, max_size=2),
    values=st.tuples(st.sampled_from([*SPLITS]), TEXTS, TEXTS),
    others=st.lists(TEXTS, max_size=3),
)
def test_a_layout_reads_back_what_its_words_were(order, between, values, others):
    """A path made of words gives these words, or is said to have two readings; others are none."""
    pattern = "".join(part for pair in zip(order, [*between, ""], strict=True) for part in pair)
    words = dict(zip(("split", "label", "name"), values, strict=True))
    layout = PathLayout.of(f"in/{pattern}.jpg out/{pattern}.png")
    path = f"in/{pattern.format(**words)}.jpg"
    mask = f"out/{pattern.format(**words)}.png"
    unused = [f"{other}.bmp" for other in others]
    try:
        found = layout.matches([path, mask, *unused])
    except ValueError:
        assert any("_" in value for value in values)
        return
    assert [(file.path, file.words, file.others) for file in found.files] == [(path, words, [mask])]
    assert (found.alone, found.unused) == ([], unused)


# layout, files that it does not fit
UNFIT = [
    ("{split}/{name}.jpg", ["a/1.jpg"]),
    ("{label}/{name}.jpg", ["1.jpg"]),
    ("{label}_{name}.jpg", ["a_b_1.jpg"]),
    ("**/{split}/**/{name}.jpg", ["train/test/1.jpg"]),
    ("images/{name}.jpg masks/{name}.png", ["images/1.jpg", "masks/2.png"]),
    ("{n}/images/*.png {n}/masks/*.png", ["1/images/a.png", "1/masks/b.png", "1/masks/c.png"]),
    ("{label}/{name}*", ["a/1.jpg", "a/1.txt"]),
    ("images/{name}.jpg labels/{name}.txt", ["images/1.jpg", "labels/1.txt"]),
    ("images/{name}.jpg labels/{name}.ann", ["images/1.jpg", "labels/1.ann"]),
    ("{label}/{name}.txt labels/{name}.txt", ["a/1.txt", "labels/1.txt"]),
]


@pytest.mark.parametrize(("layout", "files"), UNFIT)
def test_a_layout_that_does_not_fit_stops(tmp_path, layout, files):
    """Paths that fit no pattern, or fit it in two ways, stop the run and are shown."""
    write_files(tmp_path, dict.fromkeys(files, b""))
    assert refusal(recordgen.plan, f"{tmp_path}/", layout=layout).shown


NO_LAYOUTS = [
    {"layout": "{lable}/{name}.jpg"},
    {"layout": "{split/{name}.jpg"},
    {"layout": "{name}.jpg masks/*.png"},
    {"layout": "{name}.jpg {label}/{name}.png"},
    {"layout": "a b c"},
    {"layout": "/{label}/{name}.jpg"},
    {"layout": "{label}[/{name}.jpg"},
    {"layout": "{label}/{name}.jpg", "format": "folder"},
    {"layout": "{label}/{name}.jpg", "columns": "path=1"},
    {"layout": "{label}/{name}.jpg", "task": "object_detection"},
    {"layout": "{label}/{name}.jpg", "group_by": "patient"},
    {"format": "folder_layout"},
]


@pytest.mark.parametrize("options", NO_LAYOUTS)
def test_options_that_are_no_layout(tmp_path, options):
    """A misspelt word, a pattern that nothing joins, and other ways to read stop the run."""
    write_files(tmp_path, {"cat/1.jpg": b""})
    with pytest.raises(UsageError):
        recordgen.plan(f"{tmp_path}/", **options)


def test_a_file_has_no_layout(tmp_path):
    """Only folders and archives have paths to describe."""
    write_files(tmp_path, {"a.csv": "1.jpg,cat\n"})
    with pytest.raises(UsageError):
        recordgen.plan(f"{tmp_path}/a.csv", layout="{label}/{name}.jpg")


LABELME = """{"shapes": [{"label": "dog", "shape_type": "rectangle", "points": [[1, 1], [3, 2]]}],
"imageWidth": 4, "imageHeight": 4, "imagePath": "x.jpg"}"""

# suffix of the second file, its text
DOCUMENTS = [
    (".txt", "1 0.5 0.375 0.5 0.25\n"),
    (".txt", "dog 0.00 0 -1.57 1 1 3 2 1.57 1.73 4.15 1.0 1.75 13.22 1.62\n"),
    (".txt", "1 1 3 1 3 2 1 2 dog 0\n"),
    (".xml", document("x.jpg", ("dog", "1 1 3 2"), size="4 4")),
    (".json", LABELME),
]


@pytest.mark.parametrize(("suffix", "text"), DOCUMENTS)
def test_second_files_are_labels_of_their_image(tmp_path, suffix, text):
    """The lines of YOLO, KITTI and DOTA, VOC's XML and LabelMe's JSON are read by their layout."""
    files = {f"boxes/a{suffix}": text, "classes.txt": "cat\ndog\n"}
    write_files(tmp_path, {"pics/a_rgb.jpg": encoded(noise(4, 4), "JPEG"), **files})
    layout = f"pics/{{name}}_rgb.jpg boxes/{{name}}{suffix}"
    found = Outcome(f"{tmp_path}/", layout=layout)
    assert found.images == {"pics/a_rgb.jpg": [("dog", [0.25, 0.25, 0.75, 0.5])]}


@pytest.mark.parametrize("more", [{}, {"data.yaml": "nc: 1\n"}])
def test_yolo_labels_without_names_of_classes_say_what_is_missing(tmp_path, more):
    """Numbers of classes are no labels: the folder stops, and asks for their names."""
    files = {f"{at}/images/{n}.jpg": "" for at in "ab" for n in range(2)}
    labels = {f"{at}/labels/{n}.txt": "0 .5 .5 .2 .2\n" for at in "ab" for n in range(2)}
    with pytest.raises(NotUnderstoodError, match=r"a/labels/0\.txt .* classes\.txt"):
        Reading(f"{write_files(tmp_path, {**files, **labels, **more})}/")


def test_groups_of_a_layout_share_a_split(tmp_path):
    """Files with the same {group} are in one split, whatever their labels."""
    names = [f"{group}_{n}.png" for group in range(20) for n in range(3)]
    photos = {f"a/{name}": encoded(noise(seed=at), "PNG") for at, name in enumerate(names)}
    write_files(tmp_path / "in", photos)
    result = recordgen.convert(
        tmp_path / "in", tmp_path / "out", layout="{label}/{group}_{n:digits}.png", split="50,50"
    )
    splits = {}
    for uri, (split, _) in examples_of(tmp_path / "out").items():
        splits.setdefault(uri.split("_")[0], set()).add(split)
    assert result.dataset.rows.examples == 60
    assert [len(each) for each in splits.values()] == [1] * 20


def test_masks_without_an_image_are_rejects(tmp_path):
    """A second file to which no row belongs is rejected, and the row of another stays."""
    write_files(tmp_path, dict.fromkeys(["images/a.jpg", "masks/a.png", "masks/b.png"], b""))
    found = Reading(f"{tmp_path}/", layout="images/{name}.jpg masks/{name}.png")
    assert [row.uri for row in found.rows] == ["images/a.jpg"]
    assert found.codes == ["missing_file"]
    assert found.rejects[0].uri == "masks/b.png"


def test_texts_of_a_layout_have_an_encoding(tmp_path):
    """Files without a suffix are texts in the encoding that the option names."""
    files = {f"{at}/{n}": f"caf\xe9 {at} {n}".encode("latin-1") for at in "ab" for n in range(3)}
    source = write_files(tmp_path / "in", files)
    recordgen.convert(source, tmp_path / "out", layout="{label}/{name}", encoding="latin-1")
    texts = [example["text"][0].decode() for _, example in stored_examples(tmp_path / "out")]
    assert sorted(texts) == sorted(data.decode("latin-1") for data in files.values())


PHOTO = encoded(noise(), "JPEG")
MASK = encoded(noise().convert("L").point(lambda it: it // 128 * 255), "PNG")

# Folders whose proposed layout reads all pairs
PAIRS = [
    ["2_RGB/t_1_RGB.jpg", "5_Labels/t_1_label.png"],
    [f"{s}_{at}/{s}/{n}.{end}" for n, s in enumerate(("train", "val")) for at, end in (("imgs", "jpg"), ("mask", "png"))],
    [f"{s}/{n}_{end}" for n, s in enumerate(("train", "valid")) for end in ("sat.jpg", "mask.png")],
    ["a/b/images/1.jpg", "trimaps/1.png"],
    [f"D-{s}/D-{s}-{at}" for s in "RE" for at in ("Image/a1.jpg", "Mask/a1.png")],
    [f"{at}/{s}2017/{n}{end}" for n, s in enumerate(("train", "val")) for at, end in (("images", ".jpg"), ("annotations", "_labelIds.png"))],
    [f"{at}/val/ulm/{n}_{end}" for n in "12" for at, end in (("leftImg8bit", "leftImg8bit.jpg"), ("gtFine", "gtFine_labelIds.png"), ("gtFine", "gtFine_polygons.json"))],
    [f"{at}/{n}.{end}" for at, end in (("land", "jpg"), ("cover", "png")) for n in range(3)],
    [f"imgs/{n}.jpg" for n in range(3)] + [f"msks/{n}.png" for n in range(3)],
    [f"q{n}{end}" for n in range(3) for end in (".jpg", "_L.png")],
    [f"case_{n}/{at}" for n in range(3) for at in ("scan.jpg", "mask.png")],
    [f"10k/{at}/{s}/{n}{s}.{end}" for s in ("train", "val") for n in "12" for at, end in (("images", "jpg"), ("sem_seg/masks", "png"))],
    [f"{s}crop/{s}{n}.{end}" for s, some in (("train", "1234"), ("val", "567")) for n in some for end in ("jpg", "png")],
    [f"d/{at}{n}.{end}" for n in range(9) for at, end in (("im", "jpg"), ("mask", "png"))],
]  # fmt: skip


@pytest.mark.parametrize("names", PAIRS)
def test_the_proposed_layout_of_pairs_converts(tmp_path, names):
    """The options of the refusal read each image with its mask."""
    files = {name: MASK if name.endswith(".png") else PHOTO for name in names}
    source = write_files(tmp_path / "in", files)
    options = refusal(recordgen.plan, source).options
    assert refusal(recordgen.plan, source, task="image_segmentation").options == options
    found = Reading(source, split="names=yes", **options)
    assert found.options.task == "image_segmentation"
    assert len(found.rows) == sum(name.endswith(".png") for name in names)
    assert all((row.split is None) == ("val" not in "".join(names)) for row in found.rows)


XML = document("x.jpg", ("dog", "1 1 3 2"), size="16 12").strip()
KITTI = "dog 0.00 0 -1.57 1 1 3 2 1.57 1.73 4.15 1.0 1.75 13.22 1.62\n"
YOLO = "1 0.125 0.125 0.125 0.083333\n"
CLASSES = {"classes.txt": "cat\ndog\n"}

# Pattern of the images, that of their documents, one document, files beside: the proposed
# layout reads them
DESCRIBED = {
    "YOLO in other folders": ("pics/{}/{}.jpg", "boxes/{}/{}.txt", YOLO, CLASSES),
    "one of each": ("Images/{0}{1}.jpg", "Annotations/{0}{1}.txt", YOLO, CLASSES),
    "Stanford's dogs": ("Images/a/{}{}.jpg", "Annotation/a/{}{}", XML, {}),
    "VOC in other folders": ("photos/{}/{}.jpg", "xmls/{}/{}.xml", XML, {}),
    "KITTI": ("{}/image_2/{}.jpg", "{}/label_2/{}.txt", KITTI, {"train/calib/0.txt": "P0: 7\n"}),
    "classes without splits": ("JPEGImages/{}{}.jpg", "labels/{}{}.txt", YOLO, {"data.yaml": "nc: 2\nnames: [cat, dog]\n"}),
    "a path of another machine": ("{}/images/{}.jpg", "{}/labels/{}.txt", YOLO, {"data.yaml": "train: x/images\nval: ../valid/images\nnames: [cat, dog]\nnc: 2\n"}),
}  # fmt: skip


@pytest.mark.parametrize(("images", "documents", "text", "more"), DESCRIBED.values(), ids=DESCRIBED)
def test_the_proposed_layout_of_documents_converts(tmp_path, images, documents, text, more):
    """Files that describe an image each are read where they are, if their form is known."""
    places = [(split, n) for split in ("train", "val") for n in range(3)]
    for at in places:
        said = text.replace("x.jpg", f"{at[1]}.jpg")
        write_files(tmp_path, {images.format(*at): PHOTO, documents.format(*at): said})
    write_files(tmp_path, more)
    try:
        options = Reading(f"{tmp_path}/") and {}
    except NotUnderstoodError as exc:
        options = exc.options
        assert options
    found = Outcome(f"{tmp_path}/", **options)
    expected = [("dog", [0.0625, 0.0833, 0.1875, 0.1667])]
    assert found.images == {images.format(*at): expected for at in places}


COLOURS = [f"{at}/{at}{n}00.jpg" for at in ("red", "blue") for n in range(2)]
LETTERS = [f"{at[0]}/{at}/{n}.jpg" for at in ("abbey", "airport", "bakery") for n in "xyz"]
VIEWS = [f"{at}/{at}_{k}/{n}.jpg" for at in ("red", "blue") for k in "12" for n in "xy"]
DOGS = [f"{at}.{n}.jpg" for at in ("dog", "a.cat") for n in (1, 12)]
ROSES = [f"{n}_{at}.jpg" for at in ("red_rose", "tulip") for n in (1, 12)]
TABLES = {
    "test.csv": "id\na10\nb20\n", "train.csv": "image,label\na10.jpg,red\nb20.jpg,blue\n",
    "sample_submission.csv": "id,label\na10,red\nb20,red\n",
}  # fmt: skip

# images, files beside them, the source and the option that the refusal proposes, the labels there
LABELLED = [
    (["img/a1.jpg", "img/b2.jpg"], {"all.txt": "a1.jpg red\nb2.jpg blue\n"}, "all.txt", {"image_root": "img/"}, {"red", "blue"}),
    (["img/a1.jpg", "img/b2.jpg"], {"all.tsv": "file\tkind\na1.jpg\tred\nb2.jpg\tblue\n"}, "all.tsv", {"columns": "path=file,label=kind", "image_root": "img/"}, {"red", "blue"}),
    (["img/a10.jpg", "img/b20.jpg"], {"a.txt": "a10\tred\nb20\tblue\n"}, "", {}, None),
    (["x/a.jpg"], {"x/t.csv": "kind,key,time_start,time_end\na,1,0,2\n"}, "", {}, None),
    (["img/a10.jpg", "img/b20.jpg"], {"lists/all.txt": "a10.jpg red\nb20.jpg blue\n"}, "lists/all.txt", {"image_root": "img/"}, {"red", "blue"}),
    (["i/a10.jpg", "i/b20.jpg"], {"train_0.csv": "Image,Label,kind\na10.jpg,1,red\n", "val_0.csv": "Image,Label,kind\nb20.jpg,2,blue\n", "all.csv": "Image,Label,kind\na10.jpg,1,red\nb20.jpg,2,blue\n"}, "all.csv", {"columns": "path=Image,label=Label", "image_root": "i/"}, {"1", "2"}),
    (["i/a10.jpg", "i/b20.jpg"], {"train.csv": "image,label\na10.jpg,red\n", "val.csv": "image,label\nb20.jpg,blue\n"}, "*.csv", {"image_root": "i/"}, {"red", "blue"}),
    (["i/a10.jpg", "i/b20.jpg"], {"train.tsv": "a10.jpg\tred\n", "val.tsv": "b20.jpg\tblue\n"}, "*.tsv", {"image_root": "i/"}, {"red", "blue"}),
    (["i/a10.jpg", "i/b20.jpg"], {"train.csv": "a10.jpg,red\n", "val.csv": "b20.jpg,blue\n"}, "*.csv", {"image_root": "i/"}, {"red", "blue"}),
    (["i/a10.jpg", "i/b20.jpg"], {"train.csv": "image,label\na10.jpg,red\n", "val.csv": "image,name,label\nb20.jpg,B,blue\n"}, "train.csv", {"image_root": "i/"}, {"red"}),
    (["train/a10.jpg", "train/b20.jpg"], {"train.csv": "id,url,mark_id\na10,http://u.org/1.jpg,7\nb20,http://u.org/2.jpg,7\n"}, "train.csv", {"columns": "path=id,label=mark_id", "image_root": "train/"}, {"7"}),
    (["X_Input/a10.jpg", "X_Input/b20.jpg"], TABLES, "train.csv", {"image_root": "X_Input/"}, {"red", "blue"}),
    (COLOURS, {"boxes.csv": "id,x\nred000,1\nblue100,2\n"}, "", {"layout": "{label}/{name}.jpg"}, {"red", "blue"}),
    (COLOURS, {"gt/all.csv": "id,x\nred000,1\nblue100,2\n"}, "", {}, None),
    (["a/x10.jpg", "a/x20.jpg"], {"sets/cat_train.txt": "x10 1\nx20 -1\n"}, "", {}, None),
    (["i/1000.jpg", "i/2000.jpg"], {"all.txt": "1000 red one\n2000 blue two\n"}, "all.txt", {"image_root": "i/", "columns": "path=1,label=2"}, {"red one", "blue two"}),
    (["i/a10.jpg", "i/b20.jpg"], {f"{at}.csv": f"image,label\na10.jpg,{at[0]}\nb20.jpg,{at[1]}\n" for at in ("01", "10")}, "", {}, None),
    ([f"{at}/{at}1.jpg" for at in ("10006", "10011")], {"a.csv": "image,y\n100061,1\n100111,0\n"}, "a.csv", {"image_root": "", "columns": "path=image,label=y"}, {"0", "1"}),
    ([f"{at}/{at}_{n}.jpg" for at in ("kJQPZyaB", "dQw4w9Wg") for n in "12"], {"a.csv": "clip_id,act\nkJQPZyaB,run\ndQw4w9Wg,run\n"}, "", {}, None),
    (["train/cat/a10.jpg", "train/dog/b20.jpg", "test/c30.jpg", "test/d40.jpg"], {"test.csv": "image,label\nc30.jpg,cat\nd40.jpg,dog\n"}, "", {}, None),
    ([f"{s}/{c}/{c}{n}{s}.jpg" for s in ("训练集", "测试集") for c in "xy" for n in "12"], {}, "", {}, None),
    (DOGS, {}, "", {"layout": "{label}.{n:digits}.jpg"}, {"dog", "a.cat"}),
    (["a b/n1_1.jpg", "a b/n1_2.jpg", "a b/n2_1.jpg", "a b/n2_2.jpg"], {}, "", {"layout": "a*b/{label}_{n:digits}.jpg"}, {"n1", "n2"}),
    ([*(f"train/{it}" for it in DOGS), "test/1.jpg"], {}, "", {"layout": "{split}/{label}.{n:digits}.jpg"}, {"dog", "a.cat"}),
    (ROSES, {}, "", {"layout": "{n:digits}_{label}.jpg"}, {"red_rose", "tulip"}),
    (VIEWS, {}, "", {"layout": "{label}/*/{name}.jpg"}, {"red", "blue"}),
    (LETTERS, {}, "", {"layout": "*/{label}/{name}.jpg"}, {"abbey", "airport", "bakery"}),
    ([f"{at}/{c}/{c}{n}{at}.jpg" for at in ("sketch", "photo") for c in ("cat", "dog") for n in "12"], {}, "", {"layout": "*/{label}/{name}.jpg"}, {"cat", "dog"}),
    ([f"{at}/{day}/{c}/{at}{day}{c}{n}.jpg" for at in ("A", "B") for day in ("sun", "fog") for c in ("busy", "free") for n in "12"], {}, "", {"layout": "*/*/{label}/{name}.jpg"}, {"busy", "free"}),
    ([f"train_val2018/{at}/{c}/{c}{n}{at}.jpg" for at in ("sketch", "photo") for c in ("cat", "dog") for n in "12"], {}, "", {"layout": "train_val2018/*/{label}/{name}.jpg"}, {"cat", "dog"}),
    ([f"{at}/v_{at}_g{g}/{at}{g}{n}.jpg" for at in ("JumpRope", "YoYo") for g in "12" for n in "ab"], {}, "", {"layout": "{label}/*/{name}.jpg"}, {"JumpRope", "YoYo"}),
    ([f"{at}/sample_{g}/{at}{g}{n}.jpg" for at in ("cork", "wool") for g in "ab" for n in "78"], {}, "", {"layout": "{label}/*/{name}.jpg"}, {"cork", "wool"}),
    ([f"{at}/letter_{g}/{at}{g}{n}.jpg" for at in ("user1", "user2") for g in "ab" for n in "78"], {}, "", {"layout": "*/{label}/{name}.jpg"}, {"letter_a", "letter_b"}),
    ([f"{at}/species_{g}/{at}{g}{n}.jpg" for at, g in (("oak", "a"), ("oak", "b"), ("elm", "c"), ("elm", "d")) for n in "78"], {}, "", {"layout": "*/{label}/{name}.jpg"}, {f"species_{g}" for g in "abcd"}),
    ([f"{at}/{g} {at}/{g}{n}.jpg" for at, g in (("bear", "black"), ("bear", "brown"), ("cat", "wild"), ("cat", "big")) for n in "78"], {}, "", {"layout": "*/{label}/{name}.jpg"}, {"black bear", "brown bear", "wild cat", "big cat"}),
    ([f"{at}/{n}/{c}/{at}{n}{c}{k}.jpg" for at in ("fog", "snow") for n in "12" for c in ("n01440764", "n01443537") for k in "xy"], {}, "", {"layout": "*/*/{label}/{name}.jpg"}, {"n01440764", "n01443537"}),
    ([f"obj{at}__{n}.jpg" for at in "12" for n in range(2)], {}, "", {"layout": "{label}__{n:digits}.jpg"}, {"obj1", "obj2"}),
    (["i/a10.jpg", "i/b20.jpg"], {"ids.txt": "a10.jpg 3\nb20.jpg 4\n", "parts.txt": "a10.jpg 5\nb20.jpg 6\n"}, "", {}, None),
    (["i/a10.jpg", "i/b20.jpg"], {"Annotations/a10.xml": "<a><b/></a>", "Annotations/b20.xml": "<a/>"}, "", {}, None),
    ([f"{at}/0000{n}.jpg" for at in "1234" for n in "12"], {"clips.csv": "1;run\n2;run\n3;walk\n"}, "", {}, None),
    ([f"{at}/day/{at}_{n}/{n}.{end}" for at, end in (("clip", "jpg"), ("matting", "png")) for n in "xy"], {}, "", {}, None),
]  # fmt: skip


@pytest.mark.parametrize(("images", "beside", "source", "options", "labels"), LABELLED)
def test_the_proposed_way_to_labels_reads_them(tmp_path, images, beside, source, options, labels):
    """A refusal names the list or table with its image root, or the layout, or nothing."""
    write_files(tmp_path, dict.fromkeys(images, PHOTO) | beside)
    refused = refusal(Reading, f"{tmp_path}/")
    if "image_root" in options:
        options = {**options, "image_root": f"{tmp_path}/{options['image_root']}"}
    assert refused.source == (source and f"{tmp_path}/{source}")
    assert refused.options == options
    if labels is not None:
        found = Outcome(f"{tmp_path}/{source}", **options)
        assert {label for each in found.images.values() for label in each} == labels
