"""report.html: correct, self-contained, safe, and reproducible."""

import base64
import io
import json
import logging
import re
import shutil
from collections import Counter
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

import recordgen
from recordgen import write
from recordgen.cli import main
from recordgen.core.dataset.counts import RowCounts, Shard, Split
from recordgen.core.dataset.manifest import REPORT_FILE, read_dataset
from recordgen.errors import PayloadError, SourceError
from recordgen.exports import ExportOptions
from recordgen.exports.report.render import REJECTS_SHOWN, Report, render_report, to_html
from recordgen.options import ConvertOptions
from recordgen.payloads.drawing import label_colour, to_thumbnail
from recordgen.rejects import Reject
from tests.conftest import encoded, flip_bit, noise, write_noise
from tests.datasets import dataset_of as described
from tests.deaths import write_source
from tests.exports.outputs import rendered

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &amp; مرحبا ‮",
]


def seen(text):
    """Return a hostile text as the page shows it, with visible direction marks."""
    return text.replace("\u202e", "⟨202E⟩")


# Elements of the page's own template; all others would come from the data.
_ELEMENTS = (
    "html head meta title style body header main section footer p h1 h2 h3 dl dt dd div ul li "
    "table caption thead tbody tr th td span i bdi br code details summary svg path figure "
    "figcaption img nav a blockquote mark b"
)
ELEMENTS = set(_ELEMENTS.split())
EMPTY = {"meta", "br", "img", "path"}


class Page(HTMLParser):
    """The page as a browser would parse it."""

    def __init__(self, html):
        super().__init__()
        self.html = html
        self.elements = Counter()
        self.attributes = []
        self.tables = []
        self.texts = []
        self._open = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.elements[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in EMPTY:
            self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        if tag not in EMPTY:
            assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" in self._open:
            return
        if text := data.strip():
            self.texts.append(text)
        if {"th", "td"} & set(self._open):
            self.tables[-1][-1][-1] += data

    def table(self, column):
        """Return the rows of the first table that has a column or a first cell with this name."""
        return next(table for table in self.tables if column in table[0])

    def part(self, name):
        """Return one section of the page."""
        return Page(self.html.partition(f'<section id="{name}">')[2].partition("</section>")[0])

    def values(self, tag, name):
        """Return an attribute of all elements with this tag that have it."""
        return [value for kind, found, value in self.attributes if (kind, found) == (tag, name)]

    @property
    def images(self):
        sources = self.values("img", "src")
        data = (base64.b64decode(source.partition("base64,")[2]) for source in sources)
        return [Image.open(io.BytesIO(each)) for each in data]


def self_contained(html):
    """Parse a page and check that it loads nothing from outside and runs no script."""
    page = Page(html)
    assert set(page.elements) <= ELEMENTS
    assert "<script" not in html
    assert {f"#{name}" for tag, kind, name in page.attributes if kind == "id"} >= {
        value for tag, name, value in page.attributes if name == "href"
    }
    for _, name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in ("srcset", "xlink:href", "action", "formaction")
        assert name != "http-equiv" or value == "Content-Security-Policy"
        assert name != "src" or value.startswith(("data:image/png;", "data:image/jpeg;"))
        assert name != "style" or re.fullmatch(r"(width|left):[0-9.]+%", value)
    policy = next(value for _, name, value in page.attributes if name == "content")
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    style = html.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    return page


def converted_page(source, output, **options):
    """Convert an import file; return the dataset's page."""
    recordgen.convert(source, output, **options)
    return self_contained((output / REPORT_FILE).read_text(encoding="utf-8"))


def dataset_of(counts, *, unlabelled=0, **more):
    """Return an image dataset with these numbers of examples by split and label, without files."""
    names = tuple(dict.fromkeys(label for split in counts.values() for label in split))
    splits = {
        name: Split(
            sum(split.values()) + unlabelled,
            1000,
            split,
            (Shard(f"Split-{name}/data_tfrecord-00000-of-00001", 1, 1000, "0" * 64),),
            unlabelled=unlabelled,
        )
        for name, split in counts.items()
    }
    known = {"labels": names, "options": ConvertOptions().recorded()}
    return described(**{**known, **more}, splits=splits)


SOME_REJECTS = {"max_reject_fraction": 1.0}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Forty images: cats, dogs and unlabelled ones; one row is bad."""
    _, source = write_source(tmp_path_factory.mktemp("source"))
    with open(source, "a") as file:
        file.write("TRAIN,<b>nowhere</b>.jpg,cat\n")
    return source


@pytest.fixture(scope="module")
def output(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("output") / "out"
    recordgen.convert(source, folder, seed=7, shard_mb=0.01, **SOME_REJECTS)
    return folder


def test_it_says_what_dataset_json_says(source, output):
    """Counts by split and class, rows, reasons, options and digest agree with dataset.json."""
    dataset = read_dataset(str(output))
    page = self_contained((output / REPORT_FILE).read_text(encoding="utf-8"))
    header, *rows = page.table("examples")
    examples = {name: split.examples for name, split in dataset.splits.items()}
    assert {row[0]: int(row[1]) for row in rows} == examples
    formats = {row[0]: row[header.index("formats")] for row in rows}
    assert formats == {name: f"jpeg {count}" for name, count in examples.items()}
    sides = [header.index(f"{side}, px") for side in ("height", "width")]
    assert {tuple(row[side] for side in sides) for row in rows} == {("12", "16")}
    splits = list(dataset.splits)
    assert page.table("class")[0] == ["#", "class", *splits, "all", "bar"]
    assert [row[:-1] for row in page.table("class")[1:]] == [
        [
            str(number),
            label,
            *(str(dataset.splits[name].labels.get(label, 0)) for name in splits),
            str(sum(split.labels.get(label, 0) for split in dataset.splits.values())),
        ]
        for number, label in enumerate(dataset.labels)
    ]
    assert dict(page.table("read"))["rejected"] == "1"
    assert page.table("missing_file") == [["missing_file", "1"]]
    [reject] = page.table("reason")[1:]
    assert reject[:3] == ["labels.csv:41", "missing_file", "<b>nowhere</b>.jpg"]
    text = " ".join(page.texts)
    for words in (dataset.digest, source, "seed 7", "shard_mb 0.01 instead of 128"):
        assert words in text
    assert f"Examples without a label: {40 - sum(map(int, _column(page, 'all')))}." in text
    images = page.part("examples").images
    assert len(images) == sum(min(5, split.examples) for split in dataset.splits.values())
    assert {image.size for image in images} == {(16, 12)}


def _column(page, name):
    header, *rows = page.table(name)
    return [row[header.index(name)] for row in rows]


def test_the_same_data_give_the_same_page(source, tmp_path):
    """The page does not depend on the folder, the workers or the command that writes it."""
    pages = set()
    for name, more in {"a": {}, "b/c": {"threads": 3}, "d": {"resume": True}}.items():
        output = tmp_path / name
        recordgen.convert(source, output, shard_mb=0.002, **SOME_REJECTS, **more)
        page = (output / REPORT_FILE).read_bytes()
        (output / REPORT_FILE).unlink()
        done = Report().export(str(output), ExportOptions())
        assert done.files == (str(output / REPORT_FILE),)
        assert (output / REPORT_FILE).read_bytes() == page
        pages.add(page)
    assert len(pages) == 1
    assert str(tmp_path / "a") not in pages.pop().decode()


def test_data_is_text(make_images, tmp_path):
    """Labels, names and messages are escaped, whatever they contain."""
    lines, names = [], set()
    for number, (hostile, path) in enumerate(zip(HOSTILE, make_images(len(HOSTILE)), strict=True)):
        named = path.with_name(f"{hostile.replace('/', ':')}.jpg")
        path.rename(named)
        names.add(seen(named.name))
        label, uri = (text.replace('"', '""') for text in (hostile, str(named)))
        split = ("TRAIN", "TEST")[number % 2]
        lines += [f'{split},"{uri}","{label}"\n', f'{split},"{label}.jpg","{label}"\n']
    csv = tmp_path / f"{' '.join(HOSTILE).replace('/', ':')}.csv"
    csv.write_text("".join(lines), encoding="utf-8")
    page = converted_page(csv, tmp_path / "out", task="image_classification", **SOME_REJECTS)
    shown = {*map(seen, HOSTILE)}
    assert {row[1] for row in page.table("class")[1:]} == shown
    _, *rejects = page.table("reason")
    assert {row[2] for row in rejects} == {f"{text}.jpg" for text in shown}
    assert {row[0] for row in rejects} == {f"{seen(csv.name)}:{2 * n + 2}" for n in range(6)}
    assert {*names, seen(csv.name)} <= set(page.texts)
    assert {*page.values("img", "alt")} >= {f"example of {text}" for text in shown}


def test_all_of_a_dataset_is_escaped():
    """All texts of another tool's dataset.json are escaped."""
    text = "<script>alert(1)</script>\x01\u2066\xad\u2028"
    html = to_html(
        dataset_of(
            {text: {text: 3}, "eval": {text: 1}},
            **dict.fromkeys(("recordgen_version", "task", "seed", "compression", "digest"), text),
            **dict.fromkeys(("source", "warnings"), (text,)),
            options={text: text, "seed": 0},
            reencoded={text: 1},
            rows=RowCounts(rejected={text: 1}),
        ),
        [Reject(text, 1, text, text, text)],
    )
    page = self_contained(html)
    assert page.texts.count("<script>alert(1)</script>⟨0001⟩⟨2066⟩⟨00AD⟩⟨2028⟩") > 12


SIZES = [1, 2, 24, 25, 300, 1000]


@pytest.mark.parametrize("classes", SIZES)
def test_many_classes_are_folded(classes):
    """Up to 24 classes have one table; above, the largest and smallest have, the rest is folded."""
    counts = {f"label-{number:04d}": number + 1 for number in range(classes)}
    html = to_html(dataset_of({"train": counts, "eval": {"label-0000": 1}}), [])
    page = self_contained(html)
    tables = [table for table in page.tables if "class" in table[0]]
    listed = {row[1]: int(row[4].replace(",", "")) for row in tables[-1][1:]}
    assert listed == {**counts, "label-0000": 2}
    if classes <= 24:
        assert len(tables) == 1
        assert page.elements["details"] == 0
    else:
        largest, smallest = ([row[1] for row in table[1:]] for table in tables[:2])
        assert largest == [f"label-{number:04d}" for number in range(classes - 1, classes - 11, -1)]
        assert set(smallest) == {f"label-{number:04d}" for number in range(10)}
        assert (page.elements["details"], page.elements["svg"]) == (1, 0)
    assert len(html) < 300_000


def test_a_page_has_an_end():
    """The page does not grow without limit with the vocabulary; without examples it says so."""
    assert "No examples." in self_contained(to_html(dataset_of({}, labels=("cat",)), [])).texts
    html = to_html(dataset_of({"train": {str(number): 1 for number in range(20_000)}}), [])
    assert len(html) < 300_000
    assert " 1,000 of all 20,000 " in html


@pytest.mark.parametrize("shard_by", ["hash", "label"])
def test_pictures_show_many_labels(shard_by, make_csv, tmp_path):
    """Each split shows as many labels as possible, whatever its shards contain."""
    write_noise(tmp_path, range(48), 8, 8)
    source = make_csv(f"TRAIN,{number}.png,c{number % 12}" for number in range(48))
    alts = converted_page(source, tmp_path / "one", shard_by=shard_by).part("examples")
    assert len(set(alts.values("img", "alt"))) == len(alts.values("img", "alt")) == 5
    rare = {7: "rare,common", 13: "odd", 29: "common,strange"}
    source = make_csv(f"TRAIN,{n}.png,{rare.get(n, 'common,usual')}" for n in range(30))
    page = converted_page(source, tmp_path / "several", task="image_multi_label")
    alts = page.part("examples").values("img", "alt")
    shown = {label for alt in alts for label in alt.removeprefix("example of ").split(", ")}
    assert shown == {"rare", "odd", "strange", "common", "usual"}


def detection_page(make_csv, folder, lines):
    """Convert lines about images, such as 0.png of 200 by 100 pixels, and return the page."""
    for number in range(4):
        image = Image.new("RGB", (200, 100), (90, 90, 90 + number))
        (folder / f"{number}.png").write_bytes(encoded(image, "PNG"))
    return converted_page(make_csv(lines), folder / "out", task="object_detection")


def test_boxes_are_over_the_pictures(make_csv, tmp_path):
    """Boxes are at their places on the picture, grouped by label; the caption counts them."""
    lines = [
        *("TRAIN,0.png,dog,.5,.5,,,1,1,,", "TRAIN,0.png,cat,.1,.2,,,.5,.6,,"),
        *("TRAIN,0.png,dog,0,.75,,,.125,1,,", "TRAIN,1.png,,,,,,,,,"),
    ]
    page = detection_page(make_csv, tmp_path, lines)
    assert "Examples without an object: 1." in page.texts
    page = page.part("examples")
    assert page.values("svg", "viewbox") == ["0 0 200 100", "0 0 1 1", "0 0 1 1"]
    paths = list(zip(page.values("path", "stroke"), page.values("path", "transform"), strict=True))
    colours = ["#{:02x}{:02x}{:02x}".format(*label_colour(number)) for number in range(2)]
    assert paths == [(colour, "scale(200 100)") for colour in colours]
    assert page.values("path", "fill") == colours
    shapes = page.values("path", "d")[:2]
    assert shapes == ["M0.1 0.2H0.5V0.6H0.1z", "M0 0.75H0.125V1H0zM0.5 0.5H1V1H0.5z"]
    assert page.values("img", "alt") == ["example of no object", "example of cat, dog"]
    start = page.texts.index("1×")
    assert page.texts[start : start + 4] == ["1×", "cat", "2×", "dog"]
    assert "no object" in page.texts


def test_a_crowd_has_an_end(make_csv, tmp_path):
    """Of many boxes the first are drawn and all are counted; of many labels the first are named."""
    lines = (
        f"TRAIN,0.png,c{n % 30:02d},0,{n / 3000:f},,,.5,{(n + 9) / 3000:f},," for n in range(1500)
    )
    page = detection_page(make_csv, tmp_path, lines).part("examples")
    assert sum(path.count("z") for path in page.values("path", "d")) == 100 + 20  # and the swatches
    assert page.texts.count("50×") == 20
    assert "and 10 more" in page.texts


def test_all_labels_are_beside_the_pictures(make_csv, tmp_path):
    """An image with several labels names them all, and counts for each."""
    write_noise(tmp_path, range(3), 8, 8)
    source = make_csv(["TRAIN,0.png,dog,cat", "TRAIN,1.png,cat", "TRAIN,2.png"])
    page = converted_page(source, tmp_path / "out")
    texts = page.part("examples").values("img", "alt")
    assert texts == ["example of no label", "example of cat", "example of cat, dog"]
    assert [row[1:3] for row in page.table("class")[1:]] == [["cat", "2"], ["dog", "1"]]
    assert {
        "An example counts for each of its labels.",
        "Examples without a label: 1.",
        "image_multi_label",
    } <= set(page.texts)
    assert "instead of auto" not in page.texts


def test_rows_that_were_merged_and_adjusted(make_csv, tmp_path):
    """The page explains merged and adjusted rows in words; unknown kinds appear unchanged."""
    behind = ("dog,.5,.5,,,1.1,1", "cat,.1,.2,,,.5,.6", "cat,.1,.2,,,.1,.6")
    page = detection_page(make_csv, tmp_path, [f"TRAIN,0.png,{each},," for each in behind])
    assert dict(page.table("read"))["add labels or boxes to an example"] == "1"
    [clipped] = [table for table in page.tables if "boxes clipped" in table[0][0]]
    assert [row[0].partition(":")[0] for row in clipped] == ["boxes clipped", "boxes dropped"]
    assert [row[1] for row in clipped] == ["1", "1"]
    rows = RowCounts(adjusted={"<b>": 3})
    page = self_contained(to_html(dataset_of({"train": {"cat": 1}}, rows=rows), []))
    assert page.table("<b>") == [["<b>", "3"]]
    assert "add labels or boxes to an example" not in page.texts


def test_rejects_are_bounded(tmp_path):
    """The page reads and lists only the first rejects, but counts all."""
    dataset = dataset_of({"train": {"cat": 1}}, rows=RowCounts(rejected={"missing_file": 10_000}))
    dataset = replace(dataset, splits={})
    (tmp_path / "dataset.json").write_text(json.dumps(dataset.to_json()))
    line = {"source": "a.csv", "line": 1, "uri": "x", "code": "missing_file", "message": "m" * 999}
    good = f"{json.dumps(line)}\n" * REJECTS_SHOWN
    (tmp_path / "rejects.jsonl").write_text(good + "no JSON at all\n" * 10_000)
    html = render_report(tmp_path)
    page = self_contained(html)
    (tmp_path / "rejects.jsonl").write_text(f"{json.dumps(line)}\n{{}}\n")
    with pytest.raises(SourceError, match=r"rejects\.jsonl:2: "):
        render_report(tmp_path)
    assert len(page.table("reason")) == REJECTS_SHOWN + 1
    assert page.table("missing_file") == [["missing_file", "10,000"]]
    assert len(html) < 60_000


def test_written_examples(out):
    """A dataset from Python shows its features; writing another split removes the outdated page."""
    write([{"text": "<b>", "x": [1, 2]}], out)
    assert not (out / REPORT_FILE).exists()
    assert main(["report", str(out)]) == 0
    page = self_contained((out / REPORT_FILE).read_text())
    assert page.table("shape")[1:] == [["text", "bytes", "scalar"], ["x", "int64", "2"]]
    assert page.images == []
    write([{"text": "c", "x": [1, 2]}], out, split="eval")
    assert not (out / REPORT_FILE).exists()


# sources as dataset.json has them → the name on the page
SOURCES = [
    (("photos/",), "photos"),
    (("/data/photos/", "gs://bucket/"), "photos, bucket"),
    (("/data/labels.csv", "more.jsonl"), "labels.csv, more.jsonl"),
    (("DataFrame",), "DataFrame"),
    (("<b>/<i>.csv",), "<i>.csv"),
    ((), "Examples written from Python"),
]


@pytest.mark.parametrize(("sources", "name"), SOURCES)
def test_the_page_has_the_name_of_its_source(sources, name):
    """Title and heading name folders, files, a DataFrame; also beside the lines of rejects."""
    rejects = [Reject(source, 3, "a.jpg", "missing_file", "no file") for source in sources]
    page = self_contained(to_html(dataset_of({"train": {"cat": 1}}, source=sources), rejects))
    assert page.texts[:3] == [f"{name}: dataset report", "Dataset report", name]
    if rejects:
        places = [row[0] for row in page.table("reason")[1:]]
        shown = zip(name.split(", "), sources, strict=True)
        assert places == ["a.jpg" if path.endswith("/") else f"{each}:3" for each, path in shown]


# types of image/encoded, class text, label and source id → what the page shows
ODD_RECORDS = [
    ({"image/encoded": 7}, None),
    ({"image/encoded": [1.5, 2.5]}, None),
    ({"image/encoded": b"no image"}, "no preview"),
    ({"image/encoded": b"x", "image/class/text": 3, "image/class/label": "cat"}, "3"),
    ({"image/encoded": b"x", "image/object/bbox/xmin": [0.5, 0.6]}, "no label"),
    ({"image/encoded": b"x", "image/class/label": [1, 2]}, "no label"),
    ({"image/encoded": b"x", "image/class/text": ["a", "b"], "image/class/label": 1}, "b"),
    ({"image/encoded": b"x", "image/source_id": b"\xff/\xfe.jpg"}, "\ufffd.jpg"),
]


@pytest.mark.parametrize(("example", "shown"), ODD_RECORDS)
def test_records_that_only_look_like_images(example, shown, tmp_path):
    """Examples from Python may use our feature names for any type."""
    write([example], tmp_path / "out")
    page = self_contained(render_report(tmp_path / "out"))
    assert page.elements["figure"] == (shown is not None)
    assert shown is None or shown in page.texts


def test_a_page_without_pictures_is_no_failure(output, tmp_path, caplog):
    """If a shard cannot be read, the page has no pictures, and a warning is logged."""
    output = shutil.copytree(output, tmp_path / "out")
    shard, *_ = read_dataset(str(output)).splits["train"].shards
    path = output / shard.file
    for spoil in (partial(flip_bit, path, 40), path.unlink, path.touch):
        spoil()
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            page = self_contained(render_report(output))
        if spoil != path.touch:  # an empty file is a TFRecord file without records
            assert "report.html" in caplog.text
            assert page.images == []
        assert page.table("class")[1][1] == "cat"


# mode, format, size → size and format of the thumbnail
THUMBNAILS = [
    ("RGB", "JPEG", (1000, 500), (125, 63), "jpeg"),
    ("L", "JPEG", (300, 600), (64, 128), "jpeg"),
    ("CMYK", "JPEG", (300, 300), (128, 128), "jpeg"),
    ("RGBA", "PNG", (200, 200), (128, 128), "jpeg"),
    ("P", "PNG", (65, 10), (65, 10), "jpeg"),
    ("1", "PNG", (64, 64), (64, 64), "png"),
    ("I;16", "PNG", (20, 30), (20, 30), "png"),
    ("P", "GIF", (5000, 1), (128, 1), "jpeg"),
]


@pytest.mark.parametrize(("mode", "kind", "size", "small", "small_kind"), THUMBNAILS)
def test_thumbnails(mode, kind, size, small, small_kind):
    """A thumbnail fits 128 pixels, keeps the aspect ratio, and has no metadata."""
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "secret place"
    more = {} if kind == "GIF" else {"exif": exif.tobytes()}
    thumbnail = to_thumbnail(encoded(Image.new(mode, size), kind, **more), 128)
    shown = Image.open(io.BytesIO(thumbnail.data))
    assert (shown.size, thumbnail.format, shown.format) == (small, small_kind, small_kind.upper())
    assert (thumbnail.width, thumbnail.height) == size
    assert b"secret" not in thumbnail.data
    assert not shown.getexif()


def test_odd_thumbnails():
    """Small images keep their pixels; many pixels in few bytes are not decoded."""
    image = noise(28, 28)
    shown = Image.open(io.BytesIO(to_thumbnail(encoded(image, "PNG"), 128).data))
    assert shown.tobytes() == image.tobytes()
    with pytest.raises(PayloadError, match="4000×4000"):
        to_thumbnail(encoded(Image.new("1", (4000, 4000)), "PNG"), 128)


def test_reading_is_bounded(tmp_path):
    """Only a few large records are read, and only some of many shards are opened."""
    opened = []

    def path_of(file):
        opened.append(file)
        return str(tmp_path / "nowhere")

    def read(size, label=False):
        """Return the shards that are opened of 500 of one size."""
        opened.clear()
        shards = tuple(
            Shard(f"{number}", 10, size, "", f"c{number}" if label else None)
            for number in range(500)
        )
        split = Split(5000, 500 * size, {}, shards)
        rendered(replace(dataset_of({}), splits={"train": split}), path_of)
        return list(opened)

    assert read(1000) == ["0", "499"]
    assert read(300_000_000) == ["0"]
    assert len(read(1000, label=True)) == 5
    assert len(read(10_000_000, label=True)) == 2


def test_the_command(output, tmp_path, stdout_of, json_of):
    """`recordgen report` prints the path of the page, as `recordgen export report` does."""
    output, page = str(output), output / REPORT_FILE
    target = str(tmp_path / "pages" / "a.html")
    assert json_of("report", output, "--output", target) == {"written": [target]}
    assert stdout_of("export", "report", output, "--output", target) == f"wrote {target}\n"
    assert Path(target).read_bytes() == page.read_bytes()
    assert main(["report", str(tmp_path)]) == 1
    assert main(["report", output, "--", "--runner=x"]) == 2
    with pytest.raises(SourceError, match=r"no dataset\.json here"):
        render_report(tmp_path)
