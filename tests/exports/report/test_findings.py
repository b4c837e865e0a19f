"""report.html: findings with their examples, pages of all tasks, behaviour in a browser."""

import base64
import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from recordgen.core.dataset.lint import LintFinding
from recordgen.core.dataset.manifest import REPORT_FILE, read_dataset
from recordgen.core.records import RECORDS
from recordgen.errors import SourceError
from recordgen.exports.report.records import Place, RecordView, groups_of, places_in, wanted_lines
from recordgen.exports.report.render import render_report
from recordgen.payloads.drawing import Thumbnail
from recordgen.registry import CHECKS
from tests.conftest import convert_lines, encoded, noise
from tests.exports.outputs import rendered
from tests.exports.report.test_report import Page, converted_page, dataset_of, self_contained


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """Boxes on nine images: 3 copies 0 but is in test, 4 copies 1 with another label, 5 is dark."""
    folder = tmp_path_factory.mktemp("boxes")
    for number in range(9):
        image = noise(96, 64, number) if number != 5 else Image.new("RGB", (96, 64), (9, 9, 9))
        if number == 5:
            image.putpixel((3, 3), (30, 30, 30))
        name = {3: 0, 4: 1}.get(number, number)
        source = folder / f"{name}.png"
        data = source.read_bytes() if source.exists() else encoded(image, "PNG")
        (folder / f"{number}.png").write_bytes(data)
    splits = {3: "TEST", 6: "VALIDATION"}
    lines = [
        f"{splits.get(n, 'TRAIN')},{n}.png,{'dog' if n in (4, 7) else 'cat'},.1,.{n},,,.5,1,,"
        for n in range(9)
    ]
    lines[3] = lines[0].replace("TRAIN,0", "TEST,3")
    return convert_lines(folder, lines, shard_mb=0.05)


@pytest.fixture(scope="module")
def page(output):
    """The page about these images."""
    return self_contained((output / REPORT_FILE).read_text(encoding="utf-8"))


def findings_of(page, code):
    """Return the findings with this code on a page."""
    group = page.html.partition(f"<summary><code>{code}</code>")[2].partition("</details>")[0]
    return [Page(f"<li {item.partition('</li>')[0]}</li>") for item in group.split("<li ")[1:]]


def test_pairs_are_side_by_side(page):
    """A finding shows both examples: picture and boxes, file and line, split and labels."""
    [leak] = findings_of(page, "LEAK")
    assert leak.values("img", "alt") == ["example of cat"] * 2
    pictures = leak.images
    assert pictures[0].tobytes() == pictures[1].tobytes()
    assert [text for text in leak.texts if text in ("train", "test", ":4", ":1")] == [
        *(":4", "test"),  # the message
        *(":4", "test"),
        *(":1", "train"),
    ]
    assert leak.values("svg", "viewbox").count("0 0 96 64") == 2
    [conflict] = findings_of(page, "CONFLICT")
    assert conflict.values("img", "alt") == ["example of dog", "example of cat"]
    [plain] = findings_of(page, "ONE_COLOUR")
    assert len(plain.images) == 1


OF_BOXES = {
    *("Boxes in an image", "Area of a box, % of the image"),
    *("Centre of a box, % from the left", "Centre of a box, % from the top"),
}


def test_what_is_drawn(page):
    """The page has charts of sizes, brightness and positions of boxes, by split."""
    assert drawn(page) == OF_IMAGES | OF_BOXES
    assert page.table("median")[1:] == [[name, "96", "96", "96"] for name in SPLITS]


SPLITS = ("train", "eval", "test")


OF_IMAGES = {
    *("Width, pixels", "Height, pixels", "Aspect ratio, width / height"),
    *("Brightness, 0 to 255", "Contrast, 0 to 127.5", "Sharpness, 1 is sharp"),
}


def drawn(page):
    """Return the titles of the charts."""
    charts = page.html.split('<figure class="chart">')[1:]
    return {chart.partition("<bdi>")[2].partition("</bdi>")[0] for chart in charts}


# task, file, lines, parts of its examples, titles of its charts
TASKS = [
    (
        "text_classification",
        "a.csv",
        ['TRAIN,"good <b>day</b>",nice', "TRAIN,bad night,sad", "TEST,good day,nice"],
        {"good <b>day</b>", "nice", "bad night"},
        {"Length of the text, characters"},
    ),
    (
        "text_entities",
        "a.jsonl",
        [
            '{"textContent": "to Oslo now", "textSegmentAnnotations": '
            '[{"startOffset": 3, "endOffset": 7, "displayName": "city"}]}'
        ],
        {"to", "Oslo", "city", "now"},
        {"Length of the text, characters", "Tokens in a text"},
    ),
    (
        "tabular",
        "a.csv",
        ["age,job,paid", *(f"{n},{'cook' if n % 2 else 'smith'},{n % 3}" for n in range(20, 44))],
        {"age", "job", "cook"},
        {"age", "job", "paid"},
    ),
    ("declared", "a.csv", ["photo,size,use", "a.png,2.5,tea"], {"size", "2.5", "tea"}, {"size"}),
    (
        "video_classification",
        "a.csv",
        ["TRAIN,gs://b/v.mp4,run,0,2.5", "TRAIN,gs://b/v.mp4,jump,3,inf"],
        {"v.mp4", "run", "jump", "segment/start", "2.5", "inf"},
        {"video/segment/start", "video/segment/end"},
    ),
]


# Options for tasks of the table above.
OPTIONS = {
    "declared": {"schema": {"photo": "image", "size": "float", "use": "label"}},
    "tabular": {"columns": "target=job"},
}


@pytest.mark.parametrize(
    ("task", "name", "lines", "words", "titles"), TASKS, ids=[item[0] for item in TASKS]
)
def test_every_task_shows_examples(task, name, lines, words, titles, tmp_path):
    """Texts, entities, rows and segments are shown as such, and their values have charts."""
    (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "a.png").write_bytes(encoded(noise(), "PNG"))
    page = converted_page(tmp_path / name, tmp_path / "out", task=task, **OPTIONS.get(task, {}))
    assert words <= set(page.part("examples").texts)
    assert drawn(page) - OF_IMAGES == titles


def test_texts_of_a_finding_are_side_by_side(tmp_path):
    """A finding about two equal texts shows the beginnings of both."""
    long = "word-" * 100
    (tmp_path / "a.csv").write_text(f"TRAIN,{long},x\nTEST,0.txt,x\n")
    (tmp_path / "0.txt").write_text(long)
    page = converted_page(tmp_path / "a.csv", tmp_path / "out", task="text_classification")
    [leak] = findings_of(page, "LEAK")
    assert [text for text in leak.texts if text.startswith("word")] == [f"{long[:280]}…"] * 2


def test_a_page_of_a_million_examples(tmp_path):
    """The page stays below 5 MB, whatever the number of findings and examples."""
    count = 200_000
    numbers = np.arange(count)
    name = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), ["n" * 200])
    splits = pa.array((numbers % 2).astype(np.int32))
    split = pa.DictionaryArray.from_arrays(splits, ["train", "eval"])
    columns = {"split": split, "shard": name, "record": pa.array(numbers, pa.int32())}
    columns |= {"source": name, "line": numbers, "uri": name, "annotation": name}
    columns |= {"width": pa.array(numbers % 5000, pa.int32())}
    columns |= {"height": pa.array(numbers % 777, pa.int32())}
    columns |= {"brightness": pa.array(numbers % 256, pa.float32())}
    findings = [
        LintFinding(code, "warning", "n" * 200, line, "u" * 999, "train", "m" * 999, "n" * 200, 7)
        for code in CHECKS
        for line in range(12)
    ]
    labels = {f"label {number}": 1 for number in range(20_000)}
    dataset = dataset_of({"train": labels, "eval": labels}, lint=dict.fromkeys(CHECKS, 10**6))
    html = rendered(dataset, lambda file: str(tmp_path / file), findings, pa.table(columns))
    page = self_contained(html)
    assert len(html) < 5_000_000
    assert page.table("median")[1] == ["train", "0", "2,499", "4,998"]
    assert any("1,000,000" in text and " 12 " in text for text in page.texts)


def test_pictures_have_an_end():
    """Findings have pictures up to 2 MB in total; later ones are shown without."""
    thumbnail = Thumbnail(b"x" * 700_000, "png", 8, 8)
    findings = [LintFinding("DARK", "warning", "a.csv", line, "u", "", "m") for line in range(4)]
    places = {("a.csv", line): Place("train", "s", line) for line in range(4)}
    shown = {place: RecordView(has_image=True, thumbnail=thumbnail) for place in places.values()}
    [group] = groups_of(findings, dataset_of({}, lint={"DARK": 9}), places, shown)
    pictures = [side.view for item in group.items for side in item.sides]
    assert [bool(item and item.thumbnail) for item in pictures] == [True, True, False, False]
    assert group.count == 9


def test_each_code_has_its_turn():
    """Many findings of one code do not take all records from the other codes."""
    lines = {"LEAK": range(300), "DARK": range(300, 303)}
    findings = [
        LintFinding(code, "warning", "a.csv", line, "u", "train", "m")
        for code, numbers in lines.items()
        for line in numbers
    ]
    columns = {"source": ["a.csv"] * 303, "line": range(303), "split": ["train"] * 303}
    columns |= {"shard": ["s"] * 303, "record": range(303)}
    found = [line for _, line in places_in(pa.table(columns), wanted_lines(findings))]
    assert found[:6] == [0, 300, 1, 301, 2, 302]
    assert len(found) == 240


def test_records_far_behind_are_not_looked_for(output, tmp_path):
    """A finding about a record that takes long to reach is shown without its picture."""
    dataset = read_dataset(str(output))
    [shard] = dataset.splits["test"].shards
    record = RECORDS.frame(list(RECORDS.read(str(output / shard.file))))
    path = tmp_path / "many"
    path.write_bytes(b"".join((*record, *(RECORDS.frame([b""]) * 300_000), *record)))
    columns = {"split": ["test"] * 2, "shard": [shard.file] * 2, "record": [0, 300_001]}
    columns |= {"source": ["a.csv"] * 2, "line": [1, 2], "annotation": [None, "[]"]}
    found = [LintFinding("DARK", "warning", "a.csv", line, "u", "test", "m") for line in (2, 1)]
    html = rendered(dataset, lambda file: str(path), found, pa.table(columns))
    first, second = findings_of(self_contained(html), "DARK")
    assert (len(first.images), len(second.images)) == (0, 1)


def test_a_damaged_index_is_an_error(output, tmp_path):
    """A damaged Parquet file is an error; without the file, findings have no pictures."""
    shutil.copytree(output, tmp_path / "out")
    index = tmp_path / "out" / "examples.parquet"
    index.write_bytes(b"PAR1 no table")
    with pytest.raises(SourceError, match=r"examples\.parquet: "):
        render_report(tmp_path / "out")
    index.unlink()
    page = self_contained(render_report(tmp_path / "out"))
    assert findings_of(page, "LEAK")[0].images == []
    assert page.part("examples").images


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
AXE = find_spec("axe_core_python")

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")
needs_axe = pytest.mark.skipif(AXE is None, reason="needs axe-core: pip install axe-core-python")


def browse(html, folder, *, dark=False):
    """Return a page's elements after its scripts have run."""
    (folder / "page.html").write_text(html, encoding="utf-8")
    command = [
        *(str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
        *("--virtual-time-budget=20000", f"--user-data-dir={folder / 'profile'}"),
        *("--window-size=400,900", f"--blink-settings=preferredColorScheme={0 if dark else 1}"),
        f"file://{folder / 'page.html'}",
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def run_script(page, script, folder, *, dark=False):
    """Return the result of a script on a page whose policy would forbid it."""
    html = page.html.replace("Content-Security-Policy", "none")
    added = f"""<script>window.addEventListener("load", async () => {{
        const result = await (async () => {{ {script} }})();
        const out = document.createElement("pre");
        out.id = "result";
        out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(result))));
        document.body.replaceChildren(out);
    }})</script>"""
    found = browse(html.replace("</body>", f"{added}</body>"), folder, dark=dark)
    return json.loads(base64.b64decode(found.partition('id="result">')[2].partition("</pre>")[0]))


@needs_browser
@needs_axe
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(page, dark, tmp_path):
    """axe finds no serious or critical obstacle, in light and in dark mode, on a narrow screen."""
    assert AXE is not None
    assert AXE.origin is not None
    axe = Path(AXE.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    opened = Page(page.html.replace("<details", "<details open"))
    sideways = "document.documentElement.scrollWidth > window.innerWidth"
    script = f"const sideways = {sideways}; {axe}; return {{...await axe.run(), sideways}}"
    found = run_script(opened, script, tmp_path, dark=dark)
    violations = [it for it in found["violations"] if it["impact"] in ("serious", "critical")]
    serious = [(it["id"], [node["html"] for node in it["nodes"]]) for it in violations]
    assert serious == []
    assert not found["sideways"]
    assert {"color-contrast", "image-alt"} <= {item["id"] for item in found["passes"]}
