"""The whole pipeline, run the way people run it: as commands."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
import tensorflow as tf
from PIL import Image

from pipelines.config import metadata_path
from pipelines.lineage import lineage_lines, pushed_model
from pipelines.metadata import Metadata
from recordgen.dataset.manifest import read_dataset
from recordgen.kubeflow.evaluate import evaluate

pytestmark = pytest.mark.slow

STEPS = (
    "AutoMLExampleGen",
    "StatisticsGen",
    "SchemaGen",
    "ExampleValidator",
    "Trainer",
    "Evaluator",
    "Pusher",
)


def test_the_first_run_does_every_step(demo):
    """Each step is reported with its time, and nothing is noise."""
    _, done = demo
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    for step in STEPS:
        assert re.search(rf"\[\d/7\] {step}: \d+\.\d s", done.stdout), step
    assert "from cache" not in done.stdout
    assert "planned 400 of 400 rows" in done.stdout


def test_the_report(demo):
    """Counts, accuracy, blessing and places are printed, and true."""
    workdir, done = demo
    assert "400 (train " in done.stdout
    assert ", 10 labels" in done.stdout
    accuracy = float(re.search(r"accuracy +(\d\.\d+) on eval", done.stdout)[1])
    blessed = re.search(r"blessed +(yes|no)", done.stdout)[1]
    assert blessed == ("yes" if accuracy >= 0.95 else "no")
    assert blessed == "yes"
    pushed = re.search(r"pushed to +(\S+)", done.stdout)[1]
    assert (Path(pushed) / "saved_model.pb").exists()
    assert Path(pushed).is_relative_to(workdir)


def test_the_pushed_model_serves_raw_bytes(demo):
    """What was pushed answers image files of sizes it was not trained on, and mostly rightly."""
    workdir, _ = demo
    [pushed] = (workdir / "serving").iterdir()
    serve = tf.saved_model.load(str(pushed)).signatures["serving_default"]
    lines = (workdir / "data/digits.csv").read_text().splitlines()[:40]
    images, expected = [], []
    for number, line in enumerate(lines):
        _, name, label = line.split(",")
        with Image.open(workdir / "data" / name) as image:
            resized = io.BytesIO()
            image.resize((8 + number % 9, 8 + number % 7)).save(resized, "PNG")
        images.append(resized.getvalue())
        expected.append(label.encode())
    answer = serve(image_bytes=tf.constant(images))
    assert answer["labels"].shape == answer["scores"].shape == (40, 5)
    right = sum(a == b for a, b in zip(answer["labels"][:, 0].numpy(), expected, strict=True))
    assert right >= 34


def test_lineage_leads_back_to_the_import_file(demo, command):
    """From the pushed model over every step that made it to the CSV, with counts and digest."""
    workdir, _ = demo
    done = command("lineage", "--workdir", workdir)
    assert done.returncode == 0
    assert done.stderr == ""
    metadata = Metadata(metadata_path(str(workdir)))
    assert done.stdout.splitlines() == list(lineage_lines(metadata, pushed_model(metadata)))
    [examples] = metadata.artifacts("Examples")
    dataset = read_dataset(examples.uri)
    splits = ", ".join(f"{name} {split.examples}" for name, split in dataset.splits.items())
    for expected in (
        "PushedModel #",
        "made by Pusher, ",
        "made by Trainer, ",
        "made by Evaluator, ",
        "made by AutoMLExampleGen, ",
        f"400 examples ({splits}), 10 labels, 0 of 400 rows rejected, span 0, seed 0",
        f"digest {dataset.digest[:16]}",
        f"from {workdir}/data/digits.csv",
        "ModelBlessing #",
        ": blessed",
    ):
        assert expected in done.stdout, expected


def test_a_second_run_comes_from_the_cache(demo, fast_command):
    """The same data and settings: nothing is done again, the report is the same and says so."""
    workdir, first = demo
    images = {p: p.stat().st_mtime_ns for p in (workdir / "data").rglob("*")}
    again = fast_command("demo", "--workdir", workdir, "--images", 400)
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.count(": from cache") == len(STEPS)
    assert "everything came from TFX's cache" in again.stdout
    assert {p: p.stat().st_mtime_ns for p in (workdir / "data").rglob("*")} == images

    def report(text):
        return re.search(r"\nexamples .*?\n\n", text, re.DOTALL)[0]

    assert report(again.stdout) == report(first.stdout)


def test_a_model_that_is_not_good_enough(demo, fast_command):
    """Below the threshold nothing is pushed; the steps before training come from the cache."""
    workdir, _ = demo
    before = sorted((workdir / "serving").iterdir())
    done = fast_command(
        *("local", "--data", workdir / "data/digits.csv", "--workdir", workdir),
        *("--name", "digits", "--epochs", 1, "--image-size", 8, 8, "--min-score", 1),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"blessed +no", done.stdout)
    assert "pushed to  nowhere" in done.stdout
    assert "4 steps came from TFX's cache" in done.stdout
    assert sorted((workdir / "serving").iterdir()) == before


def test_bad_data_is_one_line(tmp_path, fast_command):
    """Too many rejects end the command with code 1, the reason and the rows, no traceback."""
    (tmp_path / "a.csv").write_text("TRAIN,nowhere.png,a\n")
    done = fast_command("local", "--data", tmp_path, "--workdir", tmp_path / "work")
    assert done.returncode == 1
    assert done.stderr.startswith("error: 1 of 1 rows were rejected")
    assert f"{tmp_path}/a.csv:1: nowhere.png: " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_of_several_labels(label_demo):
    """Every step runs; the report has the mean AUC and the labels that are known least."""
    workdir, done = label_demo
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    for step in STEPS:
        assert re.search(rf"\[\d/7\] {step}: \d+\.\d s", done.stdout), step
    assert "900 (train 720, eval 90, test 90), 10 labels" in done.stdout
    auc = float(re.search(r"\nauc +(\d\.\d+) on eval", done.stdout)[1])
    lowest = re.search(r"\nlowest +(.*)", done.stdout)[1].split(", ")
    areas = [float(item.split()[1]) for item in lowest]
    assert len(areas) == 5
    assert areas == sorted(areas)
    assert areas[0] < auc
    assert auc >= 0.95
    assert re.search(r"blessed +yes", done.stdout)
    [examples] = Metadata(metadata_path(str(workdir))).artifacts("Examples")
    assert read_dataset(examples.uri).task == "image_multi_label"


def test_the_pushed_model_names_several_labels(label_demo):
    """Of the digits that an image shows, most are among the model's first answers."""
    workdir, _ = label_demo
    [pushed] = (workdir / "serving").iterdir()
    serve = tf.saved_model.load(str(pushed)).signatures["serving_default"]
    rows = [line.split(",") for line in (workdir / "data/digits.csv").read_text().splitlines()]
    rows = [row for row in rows if row[0] == "TEST"]
    images = [(workdir / "data" / name).read_bytes() for _, name, *_ in rows]
    answer = serve(image_bytes=tf.constant(images))["labels"].numpy()
    right = [
        label.encode() in found[: len(labels)]
        for found, (_, _, *labels) in zip(answer, rows, strict=True)
        for label in labels
    ]
    assert sum(right) / len(right) > 0.75


def test_several_labels_as_another_task(label_demo, tmp_path, fast_command):
    """Whoever says another task is told which it is, before anything is trained."""
    workdir, _ = label_demo
    given = ("--data", workdir / "data/digits.csv", "--task", "image_classification")
    done = fast_command("local", *given, "--workdir", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "--task image_multi_label" in done.stderr


@pytest.fixture(scope="module")
def box_demo(fast_command, tmp_path_factory):
    """The demo of boxes, on a quarter of its images: its folder, and what it printed."""
    workdir = tmp_path_factory.mktemp("box_demo")
    task = ("--task", "object_detection")
    return workdir, fast_command("demo", *task, "--workdir", workdir, "--images", 300)


def test_the_demo_of_boxes(box_demo):
    """Every step runs; the report has the mean average precision and the lowest ones."""
    workdir, done = box_demo
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    for step in STEPS:
        assert re.search(rf"\[\d/7\] {step}: \d+\.\d s", done.stdout), step
    assert "300 (train 240, eval 30, test 30), 10 labels" in done.stdout
    precision = float(re.search(r"\nmap +(\d\.\d+) on eval", done.stdout)[1])
    lowest = re.search(r"\nlowest +(.*)", done.stdout)[1].split(", ")
    assert float(lowest[0].split()[1]) < precision
    assert 0.2 < precision < 0.9  # with all 1,200 images it is above
    assert re.search(r"blessed +no", done.stdout)
    [examples] = Metadata(metadata_path(str(workdir))).artifacts("Examples")
    assert read_dataset(examples.uri).task == "object_detection"


def test_the_demo_of_texts(text_demo):
    """Every step runs, and the pushed model takes texts as they are."""
    workdir, done = text_demo
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    for step in STEPS:
        assert re.search(rf"\[\d/7\] {step}: \d+\.\d s", done.stdout), step
    assert "400 of 400 texts (100%)" in done.stdout
    assert "400 (train 280, eval 80, test 40), 4 labels" in done.stdout
    assert float(re.search(r"\naccuracy +(\d\.\d+) on eval", done.stdout)[1]) >= 0.85
    [pushed] = (workdir / "serving").iterdir()
    serve = tf.saved_model.load(str(pushed)).signatures["serving_default"]
    answer = serve(text=tf.constant(["The soup and the bread, well!", "A rude waiter."]))
    assert answer["labels"][:, 0].numpy().tolist() == [b"food", b"service"]


def test_the_demo_of_entities_in_texts(entity_demo):
    """Every step runs; TFMA's F1 of all entities and of each label is that of Kubeflow's step."""
    workdir, done = entity_demo
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    for step in STEPS:
        assert re.search(rf"\[\d/7\] {step}: \d+\.\d s", done.stdout), step
    [examples] = Metadata(metadata_path(str(workdir))).artifacts("Examples")
    dataset = read_dataset(examples.uri)
    assert (dataset.task, dataset.examples) == ("text_entities", 300)
    [pushed] = (workdir / "serving").iterdir()
    found = evaluate(str(pushed), examples.uri, dataset, "eval")
    assert f"\nf1         {found.score:.4f} on eval\n" in done.stdout
    by_label = sorted((score, name.split("/")[1]) for name, score in found.by_label.items())
    lowest = ", ".join(f"{label} {score:.4f}" for score, label in by_label)
    assert f"\nlowest     {lowest}\n" in done.stdout
    assert found.score >= 0.9
    assert re.search(r"blessed +yes", done.stdout)


def test_the_demo_of_a_table(table_demo):
    """Every step runs, and what was pushed tells wines that it was not trained on apart."""
    workdir, done = table_demo
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    for step in STEPS:
        assert re.search(rf"\[\d/7\] {step}: \d+\.\d s", done.stdout), step
    assert "178 (train 108, eval 35, test 35), 3 labels" in done.stdout
    assert float(re.search(r"\nscore +(\d\.\d+) on eval", done.stdout)[1]) >= 0.9
    assert re.search(r"blessed +yes", done.stdout)
    metadata = Metadata(metadata_path(str(workdir)))
    [schema] = metadata.artifacts("Schema")
    assert 'name: "cultivar"' in Path(schema.uri, "schema.pbtxt").read_text()
    [pushed] = (workdir / "serving").iterdir()
    serve = tf.saved_model.load(str(pushed)).signatures["serving_default"]
    [examples] = metadata.artifacts("Examples")
    shards = [str(path) for path in Path(examples.uri, "Split-test").iterdir()]
    records = list(tf.data.TFRecordDataset(shards, "GZIP" if ".gz" in shards[0] else ""))
    answers = serve(examples=tf.stack(records))["labels"][:, 0].numpy()
    spec = {"cultivar": tf.io.FixedLenFeature((), tf.string)}
    truth = tf.io.parse_example(tf.stack(records), spec)["cultivar"].numpy()
    assert (answers == truth).mean() > 0.85


def test_the_demo_of_videos(video_demo):
    """Every step runs; what was pushed tells parts of one video apart, and TFMA counts the same."""
    workdir, done = video_demo
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    for step in STEPS:
        assert re.search(rf"\[\d/7\] {step}: \d+\.\d s", done.stdout), step
    assert "300 (train 210, eval 60, test 30), 4 labels" in done.stdout
    assert re.search(r"blessed +yes", done.stdout)
    [examples] = Metadata(metadata_path(str(workdir))).artifacts("Examples")
    [pushed] = (workdir / "serving").iterdir()
    found = evaluate(str(pushed), examples.uri, read_dataset(examples.uri), "eval")
    assert f"\naccuracy   {found.score:.4f} on eval\n" in done.stdout
    serve = tf.saved_model.load(str(pushed)).signatures["serving_default"]
    rows = [line.split(",") for line in (workdir / "data/test.csv").read_text().splitlines()]
    answer = serve(
        video_bytes=tf.constant([(workdir / "data" / name).read_bytes() for name, *_ in rows]),
        start=tf.constant([float(start) for _, _, start, _ in rows]),
        end=tf.constant([float(end or "inf") for *_, end in rows]),
    )
    labels = [label.decode() for label in answer["labels"][:, 0].numpy()]
    right = [label == row[1] for label, row in zip(labels, rows, strict=True)]
    assert sum(right) / len(right) > 0.8
