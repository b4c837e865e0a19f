"""Other tools' formats through AutoMLExampleGen, StatisticsGen and, one of each task, Trainer."""

import io
import json
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow_data_validation as tfdv
from tfx import v1 as tfx

from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.records import RECORDS
from recordgen.core.records.example import serialize_example
from recordgen.examplegen import AutoMLExampleGen
from tests.conftest import encoded, noise
from tests.examplegen.configs import input_config
from tests.formats.written import SPLITS, WRITERS, write

pytestmark = pytest.mark.slow

COUNT = 4
SETTINGS = {"batch_size": 2, "epochs": 1, "image_size": [32, 32]}


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
    **{
        name: (lambda root, name=name: pack(root, name), name, "image_classification")
        for name in PACK
    },
}
TRAINED = ("coco", "choices", "labels", "webdataset")


@pytest.fixture(scope="module")
def run(tmp_path_factory, run_tfx):
    """The uris of the artifacts of one run with all sources, by component and type."""
    root = tmp_path_factory.mktemp("formats")
    steps = []
    for name, (write_documents, _, _) in SOURCES.items():
        for split in SPLITS:
            folder = root / "data" / name / split
            folder.mkdir(parents=True)
            for number in range(COUNT):
                image = noise(40, 20, seed=hash((split, number)) % 1000)
                (folder / f"{split}{number}.jpg").write_bytes(encoded(image, "JPEG"))
        write_documents(root / "data" / name)
        examples = AutoMLExampleGen(
            str(root / "data"), input_config=input_config(all=f"{name}/"), lint="-ALL"
        ).with_id(f"{name}_examples")
        statistics = tfx.components.StatisticsGen(examples=examples.outputs["examples"])
        steps += [examples, statistics.with_id(f"{name}_statistics")]
        if name in TRAINED:
            trainer = tfx.components.Trainer(
                run_fn="recordgen.training.run_fn",
                examples=examples.outputs["examples"],
                custom_config=SETTINGS,
                train_args=tfx.proto.TrainArgs(),
                eval_args=tfx.proto.EvalArgs(),
            )
            steps.append(trainer.with_id(f"{name}_trainer"))
    metadata = run_tfx(root / "work", *steps)
    return {
        f"{execution.component}/{artifact.type}": artifact.uri
        for execution in metadata.latest_run()
        for artifact in metadata.outputs(execution)
    }


@pytest.mark.parametrize("name", SOURCES)
def test_examples_and_statistics(name, run):
    _, format_, task = SOURCES[name]
    dataset = read_dataset(run[f"{name}_examples/Examples"])
    assert (dataset.options["format"], dataset.task) == (format_, task)
    folder = run[f"{name}_statistics/ExampleStatistics"]
    for split in ("train", "eval"):
        assert dataset.splits[split].examples == COUNT
        found = tfdv.load_stats_binary(f"{folder}/Split-{split}/FeatureStats.pb")
        assert found.datasets[0].num_examples == COUNT


@pytest.mark.parametrize("name", TRAINED)
def test_models(name, run):
    """One step is enough to see that the examples fit the trainer of their task."""
    assert Path(run[f"{name}_trainer/Model"], "Format-Serving/saved_model.pb").exists()
