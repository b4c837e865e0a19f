"""The documentation runs as written: every block of every page, from a clean import.

The folder of a page has its data (DATA); blocks that cannot run here are listed with the reason
(NOT_RUN). All other blocks must run.
"""

import json
import re
import shlex
import shutil
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import pytest
import tensorflow as tf
import yaml
from aiohttp import web

import recordgen
from pipelines.samples.digits import write_digits, write_scattered_digits
from recordgen import cli
from recordgen.samples import write_photos
from recordgen.tasks import TASKS
from tests.pages import ROOT, bare_import, blocks, first_missing, pages, run_page, text_of
from tests.servers import serving as serving_http

WITH_TFX_HERE = find_spec("tfx") is not None
# Pages about TFX: nothing on them runs without it.
ABOUT_TFX = ("docs/pipeline.md", "docs/tfx.md", "docs/vertex.md")

_CLOUD = "needs an account of Google's cloud"
_CONTAINERS = "needs a container engine; tests with the mark `container` run the image"
_INSTALLS = "installs packages; test_extras looks for the extras in pyproject.toml"
_CLUSTER = "starts servers; tests/beam/test_runners.py converts on all of these runners"
_SCHEDULER = "needs a cluster; tests/conversion/test_parts.py starts the parts as processes"
_STORES = "needs buckets; tests/storage/test_storage_emulated.py converts from and to emulated ones"
_PIPELINE = "runs for minutes; tests/pipelines/test_demo.py runs pipelines"

# page: start of a command, or first line of a Python block → reason why it does not run here.
NOT_RUN = {
    "README.md": {"git clone": "this is the clone", "pip install": _INSTALLS},
    "CONTRIBUTING.md": {"make ": "what runs this test"},
    "docs/quick-start.md": {"pip install": _INSTALLS},
    "docs/convert.md": {"import pandas as pd": _CLOUD},
    "docs/running.md": {
        "recordgen convert labels.csv out --resume": "needs a run that was killed; see test_resume"
    },
    "docs/image.md": {
        "make image": _CONTAINERS,
        "scripts/image": _CONTAINERS,
        "docker ": _CONTAINERS,
        "RECORDGEN_IMAGE=": _CONTAINERS,
    },
    "docs/kubeflow.md": {"# digits.py": _CONTAINERS},
    "docs/model.md": {
        "import tensorflow as tf": "needs a pushed model; tests/training/test_run_fn.py calls one",
        "converter = ": "needs a pushed model; tests/training/test_saving.py converts one",
    },
    "docs/pipeline.md": {
        "python -m pipelines.local": _PIPELINE,
        "cp checked/schema.pbtxt": _PIPELINE,
        "recordgen export lineage": "needs a pipeline that has run; tests/pipelines has one",
    },
    "docs/runners.md": {
        "pip install": _INSTALLS,
        "dask ": _CLUSTER,
        "python -m apache_beam.runners": _CLUSTER,
        "recordgen convert labels.csv out -- --runner=": _CLUSTER,
        "recordgen convert gs://": _CLOUD,
        "gcloud ": _CLOUD,
        "docker ": _CONTAINERS,
        "import ray": _SCHEDULER,
    },
    "docs/storage.md": {"recordgen convert ": _STORES},
    "docs/tasks/your-own.md": {"pip install": "the fixture text_pairs installs the package"},
    "docs/vertex.md": {"gcloud ": _CLOUD, "# start.py": _CLOUD},
}

# Optional imports: in environments without them, a block is only compiled.
_APART = "tests/trainers/ has an environment of its own"
OPTIONAL = {"tfx": "the leg without TFX", **dict.fromkeys(("torch", "grain", "jax"), _APART)}


class Samples:
    """Data that several pages use, made on first use."""

    def __init__(self, folder):
        self._folder = folder

    @cached_property
    def digits(self):
        """The folder of 400 scanned digits, with ``digits.csv``."""
        return Path(write_digits(str(self._folder / "digits"), 400)).parent

    def converted(self, name, source, **options):
        """Return the output folder of a converted import file."""
        output = self._folder / name
        if not output.exists():
            recordgen.convert(str(source), output, **options)
        return output

    @cached_property
    def detections(self):
        """Sixty converted images of digits with boxes."""
        source = write_scattered_digits(str(self._folder / "scenes"), 60)
        return self.converted("detections", Path(source))

    @cached_property
    def photos(self):
        """A folder of 120 small photos by class."""
        folder = self._folder / "photos"
        write_photos(folder)
        return folder


def _labels(samples, folder):
    (folder / "images").symlink_to(samples.digits / "images")
    shutil.copy(samples.digits / "digits.csv", folder / "labels.csv")


def _converted(samples, folder):
    _labels(samples, folder)
    recordgen.convert(folder / "labels.csv", folder / "out")
    (folder / "detections").symlink_to(samples.detections)


def _labels_by_day(samples, folder):
    _labels(samples, folder)
    lines = (folder / "labels.csv").read_text().splitlines(keepends=True)
    (folder / "monday.csv").write_text("".join(lines[:50]))
    (folder / "tuesday.csv").write_text("".join(lines[:80]))


def _splits(samples, folder):
    _labels(samples, folder)
    lines = (folder / "labels.csv").read_text().splitlines(keepends=True)
    splits = ("TRAIN", "TRAIN", "TRAIN", "TEST")
    paths = [line.split(",", 1)[1] for line in lines[:200]]
    cifar = "".join(f"{splits[number % 4]},{path}" for number, path in enumerate(paths))
    (folder / "cifar.csv").write_text(cifar)
    scans = ["image_uri,label,patient_id\n"]
    for number, line in enumerate(lines[:40]):
        _, image, label = line.rstrip("\n").split(",")
        patient = f"patient{number % 10}"
        (folder / "scans" / patient).mkdir(parents=True, exist_ok=True)
        name = f"scans/{patient}/{number}.png"
        (folder / name).symlink_to(folder / image)
        scans.append(f"{name},{label},{patient}\n")
    (folder / "scans.csv").write_text("".join(scans))


def _reading(samples, folder):
    (folder / "out").symlink_to(samples.converted("out", samples.digits / "digits.csv"))
    (folder / "detections").symlink_to(samples.detections)
    (folder / "others").mkdir()
    for path in samples.detections.glob("Split-train/*"):
        shutil.copy(path, folder / "others" / f"{path.name}.tfrecord")
    reviews = ROOT / "examples/text_classification/reviews.csv"
    (folder / "reviews").symlink_to(samples.converted("reviews", reviews))


def _diff(samples, folder):
    """Fifty images on Monday; on Tuesday one is gone, three are new, and others have changed."""
    (folder / "images").symlink_to(samples.digits / "images")
    rows = {
        f"images/{number:04d}.png": ["TRAIN" if number < 40 else "TEST", str(number % 10)]
        for number in range(50)
    }
    lines = [",".join((split, uri, label)) for uri, (split, label) in rows.items()]
    (folder / "monday.csv").write_text("\n".join(lines))
    shutil.copy(samples.digits / "images/0017.png", folder / "scan.png")
    del rows["images/0005.png"]
    rows["images/0008.png"][1] = "3"
    rows["images/0041.png"][0] = "TRAIN"
    rows |= {"images/0060.png": ["TRAIN", "0"], "images/0061.png": ["TEST", "1"]}
    rows["scan.png"] = ["TEST", "7"]
    lines = [",".join((split, uri, label)) for uri, (split, label) in rows.items()]
    (folder / "tuesday.csv").write_text("\n".join(lines))


def _declared(samples, folder):
    for number in range(3):
        shutil.copy(samples.digits / f"images/{number:04d}.png", folder / f"{number}.png")
    rows = ("TRAIN,0.png,3,siamese", "TRAIN,1.png,2,persian", "TEST,2.png,7,siamese")
    (folder / "pets.csv").write_text("\n".join(["split,front,age,breed", *rows]))
    columns = {"split": "split", "front": "image", "age": "int", "breed": "label"}
    (folder / "columns.json").write_text(json.dumps(columns))


def _pipeline(_, folder):
    (folder / "data/span-1").mkdir(parents=True)
    for name in ("import.csv", "span-1/import.csv"):
        (folder / "data" / name).write_text("TRAIN,a.png,a\n")
    (folder / "curated.pbtxt").touch()
    columns = {"use": "split", "photo": "image", "kind": "label"}
    (folder / "columns.json").write_text(json.dumps(columns))


def _tfrecorder(samples, folder):
    """A clone of TFRecorder: a folder of images, and CSVs with paths from two different folders."""
    photos = sorted(samples.photos.rglob("*.jpg"))
    paths = []
    for split in ("TRAIN", "VALIDATION", "TEST"):
        for label in ("cat", "goat"):
            path = Path("tfrecorder/test_data/images", split, label, f"{label}-640x480.jpg")
            (folder / path).parent.mkdir(parents=True)
            shutil.copy(photos.pop(), folder / path)
            paths.append((split, path, label))
    (folder / "samples").mkdir()
    for csv, top in (("samples/data.csv", "../"), ("tfrecorder/test_data/data.csv", "")):
        rows = "".join(f"{split},{top}{path},{label}\n" for split, path, label in paths)
        (folder / csv).write_text(f"split,image_uri,label\n{rows}")
    header = "Survived,Pclass,Name,Sex,Age,Siblings/Spouses Aboard,Fare"
    rows = '0,3,"Braund, Mr. Owen",male,22,1,7.25\n1,1,Mrs. Cumings,female,38,1,71.3\n'
    (folder / "titanic.csv").write_text(f"{header}\n{rows}")


# In addition to examples/, which every page has as in a clone.
def _readme(_, folder):
    """Write the folders of texts and of tagged words that commands of the table convert."""
    (folder / "conll2003").mkdir()
    for split in ("train", "valid", "test"):
        words = "".join(f"In O\nTown{n} B-LOC\n\n" for n in range(10))
        (folder / f"conll2003/{split}.txt").write_text(f"-DOCSTART- O\n\n{split} O\n{words}")
    for split in ("train", "test"):
        for label, least in (("pos", 7), ("neg", 1)):
            (folder / "aclImdb" / split / label).mkdir(parents=True)
            for number in range(10):
                path = folder / f"aclImdb/{split}/{label}/{number}_{least + number % 4}.txt"
                path.write_text(f"A {label} review of {split}, number {number}.")


DATA = {
    "README.md": _readme,
    "docs/convert.md": _labels,
    "docs/looking.md": _converted,
    "docs/running.md": _labels_by_day,
    "docs/splits.md": _splits,
    "docs/diff.md": _diff,
    "docs/pipeline.md": _pipeline,
    "docs/pytorch-and-jax.md": _reading,
    "docs/reading.md": _reading,
    "docs/runners.md": _labels,
    "docs/tasks/tables.md": _declared,
    "docs/tfrecorder.md": _tfrecorder,
}


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    return Samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="module")
def folders():
    """The folders in which pages have run."""
    return {}


@pytest.fixture
def run(samples, folders, tmp_path_factory, monkeypatch):
    """Return a function that runs a page once and returns its folder."""

    def run(page, replaced=None, **variables):
        if page not in folders:
            folder = tmp_path_factory.mktemp("page")
            (folder / "examples").symlink_to(ROOT / "examples")
            DATA.get(page, lambda *_: None)(samples, folder)
            skipped = {*NOT_RUN.get(page, {}), *_without_optional(page)}
            monkeypatch.chdir(folder)
            for name, value in variables.items():
                monkeypatch.setenv(name, value)
            # TensorFlow's own seed, as if unset: earlier trainings in this process have set one.
            tf.random.set_seed(87654321)
            with bare_import():
                run_page(page, skipped, replaced or {})
            folders[page] = folder
        return folders[page]

    return run


def _without_optional(page):
    missing = {name: why for name, why in OPTIONAL.items() if find_spec(name) is None}
    return {
        block.starts[0]: why
        for block in blocks(page)
        for name, why in missing.items()
        if block.language == "python"
        and re.search(rf"^(import|from) {name}\b", block.text, re.MULTILINE)
    }


# --- blocks -----------------------------------------------------------------------------------


def has_blocks(page):
    return any(block.language in ("python", "console") for block in blocks(page))


PLAIN = [page for page in pages() if has_blocks(page)]
for _page in ("docs/kubeflow.md", "docs/vertex.md", "docs/tasks/your-own.md"):
    PLAIN.remove(_page)  # tested below, each with its own set-up


@pytest.mark.parametrize("page", PLAIN)
def test_every_block_of_the_page_works_in_order(page, run):
    """From a clean import, with the output that it shows."""
    if page in ABOUT_TFX and not WITH_TFX_HERE:
        pytest.skip("needs TFX")
    run(page)


def test_the_package_of_an_own_task_works_as_its_page_shows(run, text_pairs):
    """With the package installed."""
    run("docs/tasks/your-own.md")


@pytest.mark.skipif(not WITH_TFX_HERE, reason="needs TFX")
def test_jobs_of_the_page_compile(run):
    """The commands of the page write jobs."""
    assert json.loads((run("docs/vertex.md") / "job.json").read_text())["runtimeConfig"]


def commands(page):
    """Return all commands of a page."""
    consoles = [block for block in blocks(page) if block.language == "console"]
    return [command for block in consoles for command, _ in block.commands()]


@pytest.mark.parametrize("page", pages())
def test_every_block_is_run_or_listed(page):
    """Python compiles, commands are in blocks that run, and no reason is left over."""
    starts = []
    for block in blocks(page):
        where = f"{block.page}:{block.line}"
        if block.language == "python":
            if not block.text.startswith(">>>"):
                compile(block.text, where, "exec")
            starts += block.starts
        elif block.language == "console":
            starts += block.starts
        elif block.language != "text":
            hidden = r"(\$|make|pip|python3?|recordgen|docker|gcloud) "
            lines = [line for line in block.text.splitlines() if re.match(hidden, line)]
            assert not lines or block.language == "dockerfile", f"{where}: use ```console"
    for listed in NOT_RUN.get(page, {}):
        assert any(start.startswith(listed) for start in starts), f"{page}: {listed!r} is gone"


def test_lines_that_are_shown():
    """They must follow in this order; only figures of time and size may differ."""
    output = "reading\nConverted 120 images (12 kB) in 0.3 s, 400 images/s\n  split  examples\n"
    shown = ["Converted 120 images (98.5 kB) in 2.9 s, 1,619 images/s", "split examples"]
    assert first_missing(shown, output) is None
    assert first_missing(["…", "Converted 120 … images/s"], output) is None
    assert first_missing(shown[::-1], output) == shown[0]
    assert first_missing(["Converted 121 images (…"], output) == "Converted 121 images (…"


def test_every_task_has_a_command_that_detects_it(run, monkeypatch, capsys):
    """The table of the first page has all tasks."""
    folder = run("README.md")
    monkeypatch.chdir(folder)
    row = r"^\|.*\| `recordgen (convert [^`]*)` \|$"
    found = re.findall(row, text_of("README.md"), re.MULTILINE)
    tasks = set()
    for words in map(shlex.split, found):
        assert cli.main(words) == 0, capsys.readouterr().err
        tasks.add(recordgen.read_dataset(str(folder / words[2])).task)
    assert tasks == set(TASKS)


def test_csv_folder_and_frame_give_the_same_examples(run):
    """The three sources of TFRecorder."""
    folder = run("docs/tfrecorder.md")
    for name in ("from-csv", "from-folder", "from-df"):
        dataset = recordgen.read_dataset(str(folder / name))
        assert [split.examples for split in dataset.splits.values()] == [2, 2, 2]
        assert dataset.labels == ("cat", "goat")
    assert len(list((folder / "seen").iterdir())) == 2


# --- commands that cannot run here are at least parsed ------------------------------------------


def arguments_of(page, start):
    """Return the arguments of all commands of a page that begin with ``start``."""
    found = [shlex.split(line) for line in commands(page) if line.startswith(start)]
    assert found
    return found


def test_dataflow_takes_the_flags():
    """Those of the page pass the checks before a job is sent."""
    from recordgen.beam import check_dataflow, check_flags

    for words in arguments_of("docs/runners.md", "recordgen convert gs://"):
        split = words.index("--")
        assert cli.build_parser().parse_args(words[1:split]).command == "convert"
        check_flags(words[split + 1 :])
        check_dataflow(words[split + 1 :])


@pytest.mark.skipif(not WITH_TFX_HERE, reason="needs TFX")
def test_the_local_pipeline_takes_its_arguments(run, monkeypatch):
    """Those of the page."""
    from pipelines import local

    folder = run("docs/pipeline.md")
    monkeypatch.chdir(folder)
    for words in arguments_of("docs/pipeline.md", "python -m pipelines.local"):
        settings = local.parse_settings(local.build_parser().parse_args(words[3:]))
        assert settings.input_base == str(folder / "data")


def test_make_knows_its_targets():
    """Each that a page names."""
    makefile = (ROOT / "Makefile").read_text()
    for page in pages():
        text = text_of(page)
        named = set(re.findall(r"(?:^|`)(?:\w+=\S+ )*make ([a-z-]+)", text, re.MULTILINE))
        for target in named:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page}: make {target}"


def test_every_extra_on_a_page_can_be_installed():
    """No other extra is named."""
    project = (ROOT / "pyproject.toml").read_text()
    [section] = re.findall(r"^\[project\.optional-dependencies\]\n(.*?)^\[", project, re.M | re.S)
    extras = set(re.findall(r"^(\w+) = \[", section, re.MULTILINE))
    named = set()
    for page in pages():
        text = text_of(page)
        named |= set(re.findall(r"`\[(\w+)\]`", text))
        installs = re.findall(r"pip install (\S+)", text)
        assert not [what for what in installs if what.startswith("'recordgen[")], page
        named |= {extra for what in installs for extra in re.findall(r"\[(\w+)\]", what)}
    assert {"dask", "gcs", "s3", "http", "tfx", "kfp", "vertex", "pandas"} <= named <= extras


# --- Kubeflow ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kubeflow_runs():
    """Fake KFP's API: return its URL, and the runs that were created."""
    runs = []

    async def answer(request):
        experiment = {"experiment_id": "1", "display_name": "Default", "namespace": ""}
        what = request.path.rpartition("/")[2]
        if request.method == "POST" and what == "runs":
            runs.append(await request.json())
            return web.json_response({"run_id": "7", "display_name": "run"})
        if what == "experiments":
            listed = {"experiments": [experiment], "total_size": 1}
            return web.json_response(experiment if request.method == "POST" else listed)
        return web.json_response({"multi_user": False} if what == "healthz" else experiment)

    with serving_http(answer) as url:
        yield url, runs


def test_steps_compile_and_the_client_submits_them(run, kubeflow_runs):
    """The run has the parameters and limits of the page."""
    kubeflow = run("docs/kubeflow.md", {"http://localhost:8080": kubeflow_runs[0]})
    resources = {"daily.yaml": ("train", 8, 30), "flowers.yaml": ("convert", 8, 4)}
    for name, (step, *limits) in resources.items():
        specification = next(iter(yaml.safe_load_all((kubeflow / name).read_text())))
        assert specification["schemaVersion"] == "2.1.0"
        executor = specification["deploymentSpec"]["executors"][f"exec-{step}"]
        found = executor["container"]["resources"]
        assert [found["cpuLimit"], found["memoryLimit"]] == limits
    [sent] = kubeflow_runs[1]
    given = sent["runtime_config"]["parameters"]
    assert given["source"] == "gs://bucket/flowers/labels.csv"
    assert given["serving_dir"] == "gs://bucket/serving"
    assert json.dumps(sent["pipeline_spec"]).count("recordgen.kubeflow") == 6
