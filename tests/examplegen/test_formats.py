"""Other tools' formats through AutoMLExampleGen, and those of four tasks through Trainer.

StatisticsGen and Trainer see only an artifact and its examples. So each format is shown to give the
features of a CSV, and one format of each task goes on to them.
"""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow_data_validation as tfdv
from PIL import Image
from tfx import v1 as tfx

from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.records import RECORDS
from recordgen.core.records.example import serialize_example
from recordgen.core.rows.details import FLAGS
from recordgen.examplegen import AutoMLExampleGen
from tests.conftest import encoded, noise, stored_examples
from tests.examplegen.configs import input_config
from tests.formats.written import SPLITS, WRITERS, write

pytestmark = pytest.mark.slow

COUNT = 4
SETTINGS = {"batch_size": 2, "epochs": 1}
IMAGES = {"image_size": [32, 32]}


def write_choices(root):
    """Write one label for each image, as Label Studio does."""
    for split in SPLITS:
        tasks = [
            {
                "data": {"image": path.name},
                "annotations": [{"result": [{"type": "choices", "value": {"choices": [label]}}]}],
            }
            for path, label in zip(sorted((root / split).iterdir()), "abab", strict=True)
        ]
        (root / split / "project.json").write_text(json.dumps(tasks))


def write_labels(root):
    """Write several labels for each image, as Open Images does."""
    for split in SPLITS:
        lines = ["ImageID,Source,LabelName,Confidence"]
        lines += [
            f"{path.stem},verification,{label},1"
            for path in sorted((root / split).iterdir())
            for label in "ab"
        ]
        (root / split / "imagelabels.csv").write_text("\n".join(lines))


def write_texts(root):
    """Write texts in folders of two classes instead of images, as in aclImdb."""
    for split in SPLITS:
        for number, path in enumerate(sorted((root / split).iterdir())):
            path.unlink()
            text = root / split / "ab"[number % 2] / f"{number}.txt"
            text.parent.mkdir(exist_ok=True)
            text.write_text(f"{split} has text {number}")


def write_masks(root):
    """Write a mask beside each image."""
    for split in SPLITS:
        for path in sorted((root / split).iterdir()):
            mask = np.zeros((20, 40), np.uint8)
            mask[:10] = 1
            Image.fromarray(mask).save(path.with_name(f"{path.stem}_mask.png"))


def write_csv(root, labels):
    """Write the import file of AutoML, with these labels for each image or text."""
    files = (path for path in sorted(root.rglob("*.*")) if "mask" not in path.name)
    words = dict(zip(SPLITS, ("TRAIN", "VALIDATION"), strict=True))
    lines = (
        f"{words[name.split('/')[0]]},{name},{label.format(name=name[:-4])}"
        for name in (path.relative_to(root).as_posix() for path in files)
        for label in labels.splitlines()
    )
    (root / "import.csv").write_text("\n".join(lines))


BOXES = "cat,0.1,0.25,,,0.2,0.5,,\ndog,0,0,,,1,1,,"


def write_one_hot(root):
    """Write a table of one-hot labels for each split, as Roboflow does."""
    for split in SPLITS:
        lines = ["filename, a, b", *(f"{each.name}, 1, 1" for each in (root / split).iterdir())]
        (root / split / "_classes.csv").write_text("\n".join(lines))


def pack(root, kind):
    """Write the images of each split, with labels, as a container in place of them."""
    for split in SPLITS:
        images = sorted((root / split).iterdir())
        labelled = [(path.name, path.read_bytes(), at % 2) for at, path in enumerate(images)]
        PACK[kind](root, split, labelled)
        for path in images:
            path.unlink()


def _tar(root, split, labelled):
    with tarfile.open(root / f"{split}-000000.tar", "w") as tar:
        for name, data, label in labelled:
            for member, content in ((name, data), (f"{name[:-4]}.cls", b"%d" % label)):
                info = tarfile.TarInfo(member)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))


def _records(root, split, labelled):
    records = (
        serialize_example({"image/encoded": data, "image/class/label": label})
        for _, data, label in labelled
    )
    frames = b"".join(b"".join(RECORDS.frame(record)) for record in records)
    (root / f"{split}.tfrecord").write_bytes(frames)


def _parquet(root, split, labelled):
    columns = {"image": [it[1] for it in labelled], "label": [it[2] for it in labelled]}
    path = root / f"{split}-00000-of-00001.parquet"
    pq.write_table(pa.table(columns), path, compression="none")


PACK = {"webdataset": _tar, "tfrecord": _records, "parquet": _parquet}

#: by name: how the documents are written, the format and the task
SOURCES = {
    **{
        name: (lambda root, name=name: write(name, root), name, "object_detection")
        for name in WRITERS
    },
    "choices": (write_choices, "label_studio", "image_classification"),
    "labels": (write_labels, "open_images", "image_multi_label"),
    "one_hot": (write_one_hot, "csv", "image_multi_label"),
    "texts": (write_texts, "text_folder", "text_classification"),
    "masks": (write_masks, "mask_folders", "image_segmentation"),
    **{
        name: (lambda root, name=name: pack(root, name), name, "image_classification")
        for name in PACK
    },
}

#: by task: what is written before the CSV, and its labels
CSV = {
    "object_detection": (None, BOXES),
    "image_classification": (None, "a"),
    "image_multi_label": (None, "a,b"),
    "text_classification": (write_texts, "a"),
    "image_segmentation": (write_masks, "{name}_mask.png"),
}
TRAINED = {"coco": IMAGES, "webdataset": IMAGES, "texts": {}, "masks": IMAGES}

# What documents say of objects beside their boxes.
DETAILS = {f"image/object/{word}" for word in (*FLAGS, "area")}


@pytest.fixture(scope="module")
def run(tmp_path_factory, run_tfx):
    """The uris of the artifacts of one run with all sources, by component and type."""
    root = tmp_path_factory.mktemp("formats")
    steps = []
    for name in (*SOURCES, *CSV):
        for split in SPLITS:
            folder = root / "data" / name / split
            folder.mkdir(parents=True)
            for number in range(COUNT):
                image = noise(40, 20, seed=hash((split, number)) % 1000)
                (folder / f"{split}{number}.jpg").write_bytes(encoded(image, "JPEG"))
        if name in SOURCES:
            SOURCES[name][0](root / "data" / name)
            pattern, options = f"{name}/", {}
        else:
            prepare, labels = CSV[name]
            if prepare:
                prepare(root / "data" / name)
            write_csv(root / "data" / name, labels)
            pattern, options = f"{name}/import.csv", {"task": name}
        examples = AutoMLExampleGen(
            str(root / "data"), input_config=input_config(all=pattern), lint="-ALL", **options
        ).with_id(f"{name}_examples")
        steps.append(examples)
        if name in TRAINED:
            statistics = tfx.components.StatisticsGen(examples=examples.outputs["examples"])
            trainer = tfx.components.Trainer(
                run_fn="recordgen.training.run_fn",
                examples=examples.outputs["examples"],
                custom_config={**SETTINGS, **TRAINED[name]},
                train_args=tfx.proto.TrainArgs(),
                eval_args=tfx.proto.EvalArgs(),
            )
            steps += [statistics.with_id(f"{name}_statistics"), trainer.with_id(f"{name}_trainer")]
    metadata = run_tfx(root / "work", *steps)
    return {
        f"{execution.component}/{artifact.type}": artifact.uri
        for execution in metadata.latest_run()
        for artifact in metadata.outputs(execution)
    }


def features_of(folder):
    """Return the type of each feature of examples."""
    return {
        name: type(values[0])
        for _, example in stored_examples(folder)
        for name, values in example.items()
    }


@pytest.mark.parametrize("name", SOURCES)
def test_examples(name, run):
    """They have the format, the task and the splits, and the features of a CSV's examples."""
    _, format_, task = SOURCES[name]
    folder = run[f"{name}_examples/Examples"]
    dataset = read_dataset(folder)
    assert (dataset.options["format"], dataset.task) == (format_, task)
    assert {split: dataset.splits[split].examples for split in ("train", "eval")} == {
        "train": COUNT,
        "eval": COUNT,
    }
    found, expected = features_of(folder), features_of(run[f"{task}_examples/Examples"])
    assert found.items() >= expected.items()
    assert found.keys() - expected.keys() <= DETAILS


@pytest.mark.parametrize("name", TRAINED)
def test_statistics(name, run):
    folder = run[f"{name}_statistics/ExampleStatistics"]
    for split in ("train", "eval"):
        found = tfdv.load_stats_binary(f"{folder}/Split-{split}/FeatureStats.pb")
        assert found.datasets[0].num_examples == COUNT


@pytest.mark.parametrize("name", TRAINED)
def test_models(name, run):
    """One epoch is enough to see that the examples fit the trainer of their task."""
    assert Path(run[f"{name}_trainer/Model"], "Format-Serving/saved_model.pb").exists()
