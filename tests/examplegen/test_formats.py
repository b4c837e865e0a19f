"""Other tools' formats through AutoMLExampleGen, StatisticsGen and Trainer.

Each kind of source has an ExampleGen of its own: a folder of documents, an archive, a folder by
class, and containers. A StatisticsGen and a Trainer take long to start, so each task has one:
statistics of the examples of its first source, and a training with the examples of all, which saves
no model. tests/formats reads each format without TFX.
"""

import io
import json
import shutil
import tarfile
from functools import partial
from pathlib import Path

import pytest
import tensorflow_data_validation as tfdv
from tfx import v1 as tfx
from tfx.types import channel_utils

from recordgen import convert
from recordgen.core.dataset.manifest import read_dataset
from recordgen.examplegen import AutoMLExampleGen
from tests.conftest import encoded, noise
from tests.examplegen.configs import input_config
from tests.formats.written import SPLITS, write

pytestmark = pytest.mark.slow

COUNT = 4
SETTINGS = {"batch_size": COUNT, "epochs": 1, "image_size": [16, 16], "augment": "none"}


def write_zip(root):
    """Write YOLO's folder as an archive in place of it."""
    write("yolo", root)
    archive = shutil.make_archive(str(root.with_suffix("")), "zip", root)
    shutil.rmtree(root)
    root.mkdir()
    shutil.move(archive, root / "data.zip")


def write_by_class(root):
    """Move each image into the folder of its class."""
    for split in SPLITS:
        for number, path in enumerate(sorted((root / split).iterdir())):
            (root / split / "ab"[number % 2]).mkdir(exist_ok=True)
            path.rename(root / split / "ab"[number % 2] / path.name)


def write_tars(root):
    """Write the images of each split, with labels, as WebDataset's tar in place of them."""
    for split in SPLITS:
        with tarfile.open(root / f"{split}-000000.tar", "w") as tar:
            for number, path in enumerate(sorted((root / split).iterdir())):
                label = b"%d" % (number % 2)
                for name, content in ((path.name, path.read_bytes()), (f"{path.stem}.cls", label)):
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
        shutil.rmtree(root / split)


#: by name: how the source is written, its path, the format and the task
SOURCES = {
    "coco": (partial(write, "coco"), "coco/", "coco", "object_detection"),
    "zip": (write_zip, "zip/data.zip", "yolo", "object_detection"),
    "by_class": (write_by_class, "by_class/", "folder", "image_classification"),
    "tars": (write_tars, "tars/", "webdataset", "image_classification"),
}
TASKS = sorted({task for *_, task in SOURCES.values()})


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder of its own for each source, below ``data``."""
    root = tmp_path_factory.mktemp("formats")
    for name, (write_source, *_) in SOURCES.items():
        folder = root / "data" / name
        for split in SPLITS:
            (folder / split).mkdir(parents=True)
            for number in range(COUNT):
                image = noise(40, 20, seed=len(split) * COUNT + number)
                (folder / split / f"{split}{number}.jpg").write_bytes(encoded(image, "JPEG"))
        write_source(folder)
    return root


@pytest.fixture(scope="module")
def run(root, run_tfx):
    """The uris of the artifacts of one run with all sources, by component and type."""
    steps, examples = [], {task: [] for task in TASKS}
    for name, (_, path, _, task) in SOURCES.items():
        example_gen = AutoMLExampleGen(
            str(root / "data"), input_config=input_config(all=path), lint="-ALL"
        ).with_id(f"{name}_examples")
        examples[task].append(example_gen.outputs["examples"])
        steps.append(example_gen)
    for task, found in examples.items():
        statistics = tfx.components.StatisticsGen(examples=found[0], exclude_splits=["eval"])
        steps.append(statistics.with_id(f"{task}_statistics"))
        trainer = tfx.components.Trainer(
            run_fn="tests.examplegen.fitted.run_fn",
            examples=channel_utils.union(found),
            custom_config=SETTINGS,
            train_args=tfx.proto.TrainArgs(),
            eval_args=tfx.proto.EvalArgs(),
        )
        steps.append(trainer.with_id(f"{task}_trainer"))
    metadata = run_tfx(root / "work", *steps, beam_args=["--no_pipeline_type_check"])
    return {
        f"{execution.component}/{artifact.type}": artifact.uri
        for execution in metadata.latest_run()
        for artifact in metadata.outputs(execution)
    }


@pytest.mark.parametrize("name", SOURCES)
def test_examples_are_those_of_a_conversion(name, root, run, tmp_path):
    """TFX's artifact has the format, the task, the splits and the bytes of ``convert``."""
    _, path, format_, task = SOURCES[name]
    dataset = read_dataset(run[f"{name}_examples/Examples"])
    assert (dataset.options["format"], dataset.task) == (format_, task)
    assert {split: dataset.splits[split].examples for split in ("train", "eval")} == {
        "train": COUNT,
        "eval": COUNT,
    }
    convert(f"{root}/data/{path}", tmp_path / "out", lint="-ALL")
    assert read_dataset(str(tmp_path / "out")).digest == dataset.digest


@pytest.mark.parametrize("task", TASKS)
def test_statistics_and_training(task, run):
    """Statistics count the examples; one epoch reads those of all sources."""
    path = run[f"{task}_statistics/ExampleStatistics"]
    [statistics] = tfdv.load_stats_binary(f"{path}/Split-train/FeatureStats.pb").datasets
    assert statistics.num_examples == COUNT

    path = Path(run[f"{task}_trainer/Model"], "Format-Serving/fitted.json")
    names = [name for name, (*_, its) in SOURCES.items() if its == task]
    assert json.loads(path.read_text()) == {
        "roots": [run[f"{name}_examples/Examples"] for name in names],
        "steps": len(names),
    }
