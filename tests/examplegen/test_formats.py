"""Other tools' formats through AutoMLExampleGen, StatisticsGen and Trainer.

Each format has an ExampleGen of its own. A StatisticsGen and a Trainer take long to start, so each
task has one: statistics of the examples of its first format, and a training with the examples of
all, which saves no model. The CSV with which examples are compared is converted without TFX.
"""

import io
import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow_data_validation as tfdv
from PIL import Image
from tfx import v1 as tfx
from tfx.types import channel_utils

from recordgen import convert
from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.records import RECORDS
from recordgen.core.records.example import serialize_example
from recordgen.examplegen import AutoMLExampleGen
from recordgen.features import FLAGS
from tests.conftest import encoded, noise, stored_examples
from tests.examplegen.configs import input_config
from tests.formats.written import SPLITS, WRITERS, tfds_features, write

pytestmark = pytest.mark.slow

COUNT = 4
SETTINGS = {"batch_size": COUNT, "epochs": 1}
IMAGES = {"image_size": [16, 16], "augment": "none"}


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


def write_by_class(root):
    """Move each image into the folder of its class."""
    for split in SPLITS:
        for number, path in enumerate(sorted((root / split).iterdir())):
            (root / split / "ab"[number % 2]).mkdir(exist_ok=True)
            path.rename(root / split / "ab"[number % 2] / path.name)


def write_names(root):
    """Write a CSV of the names of images, without suffixes."""
    names = (path.relative_to(root).with_suffix("") for path in sorted(root.rglob("*.jpg")))
    lines = (f"{name},{'ab'[at % 2]},{name.parts[0]}\n" for at, name in enumerate(names))
    (root / "names.csv").write_text("".join(["image_id,label,split\n", *lines]))


def write_zip(root):
    """Write YOLO's folder as an archive in place of it."""
    write("yolo", root)
    archive = shutil.make_archive(str(root.with_suffix("")), "zip", root)
    shutil.rmtree(root)
    root.mkdir()
    shutil.move(archive, root / "data.zip")


def write_tfds(root):
    """Write records as TensorFlow Datasets does, with features.json beside them."""
    for split in SPLITS:
        images = sorted((root / split).iterdir())
        records = [{"image": path.read_bytes(), "label": at % 2} for at, path in enumerate(images)]
        _write_records(root / f"x-{split}.tfrecord-00000-of-00001", records)
        shutil.rmtree(root / split)
    features = tfds_features({"image": "Image", "label": "ClassLabel"})
    (root / "features.json").write_text(json.dumps(features))
    (root / "label.labels.txt").write_text("a\nb\n")


def write_conll(root):
    """Write a file of tokens and tags for each split, in place of its images."""
    for split in SPLITS:
        shutil.rmtree(root / split)
        sentences = (f"Anna B-PER\n{split}{number} O\n\n" for number in range(COUNT))
        (root / f"{split}.conll").write_text("".join(sentences))


def write_sentences(root):
    """Write a file of sentences and one of tags for each split, in place of its images."""
    for split in SPLITS:
        shutil.rmtree(root / split)
        texts = (f"Anna {split}{number}\n" for number in range(COUNT))
        (root / f"{split}_sentences.txt").write_text("".join(texts))
        (root / f"{split}_labels.txt").write_text("B-PER O\n" * COUNT)


def write_jsonl(root):
    """Write the import file of AutoML for texts with entities."""
    entities = [{"startOffset": 0, "endOffset": 4, "displayName": "PER"}]
    lines = [
        {"textContent": f"Anna flew{at}", "textSegmentAnnotations": entities} for at in range(COUNT)
    ]
    (root / "import.jsonl").write_text("\n".join(map(json.dumps, lines)))


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
    records = ({"image/encoded": data, "image/class/label": label} for _, data, label in labelled)
    _write_records(root / f"{split}.tfrecord", records)


def _write_records(path, records):
    framed = (RECORDS.frame(serialize_example(record)) for record in records)
    path.write_bytes(b"".join(map(b"".join, framed)))


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
    "zip": (write_zip, "yolo", "object_detection"),
    "choices": (write_choices, "label_studio", "image_classification"),
    "labels": (write_labels, "open_images", "image_multi_label"),
    "one_hot": (write_one_hot, "csv", "image_multi_label"),
    "by_class": (write_by_class, "folder", "image_classification"),
    "names": (write_names, "csv", "image_classification"),
    "tfds": (write_tfds, "tfrecord", "image_classification"),
    "conll": (write_conll, "conll", "text_entities"),
    "sentences": (write_sentences, "iob", "text_entities"),
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
    "text_entities": (write_jsonl, ""),
}
#: by name: the import file, if it is not the folder
FILES = {"names": "names.csv", "zip": "data.zip"}

# What documents say of objects beside their boxes.
_OUTLINES = ("polygon/x", "polygon/y", "polygon/points", "polygon/count")
DETAILS = {f"image/object/{word}" for word in (*FLAGS, "area", *_OUTLINES)}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder of its own for each source and each task's CSV, below ``data``."""
    root = tmp_path_factory.mktemp("formats")
    for name in (*SOURCES, *CSV):
        folder = root / "data" / name
        for split in SPLITS:
            (folder / split).mkdir(parents=True)
            for number in range(COUNT):
                image = noise(40, 20, seed=len(split) * COUNT + number)
                (folder / split / f"{split}{number}.jpg").write_bytes(encoded(image, "JPEG"))
        if name in SOURCES:
            SOURCES[name][0](folder)
        else:
            prepare, labels = CSV[name]
            if prepare:
                prepare(folder)
            if labels:
                write_csv(folder, labels)
    return root


@pytest.fixture(scope="module")
def run(root, run_tfx):
    """The uris of the artifacts of one run with all sources, by component and type."""
    steps, examples = [], {task: {} for task in CSV}
    for name, (_, _, task) in SOURCES.items():
        path = f"{name}/{FILES.get(name, '')}"
        more = {"image_root": str(root / "data" / name)} if name == "names" else {}
        example_gen = AutoMLExampleGen(
            str(root / "data"), input_config=input_config(all=path), lint="-ALL", **more
        ).with_id(f"{name}_examples")
        examples[task][name] = example_gen.outputs["examples"]
        steps.append(example_gen)
    for task, found in examples.items():
        statistics = tfx.components.StatisticsGen(
            examples=next(iter(found.values())), exclude_splits=["eval"]
        )
        steps.append(statistics.with_id(f"{task}_statistics"))
        trainer = tfx.components.Trainer(
            run_fn="tests.examplegen.fitted.run_fn",
            examples=channel_utils.union(found.values()),
            custom_config=SETTINGS | (IMAGES if task.startswith(("image", "object")) else {}),
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


@pytest.fixture(scope="module")
def features_of_csv(root):
    """The features of the examples of each task's CSV."""
    found = {}
    for task in CSV:
        folder = root / "converted" / task
        [source] = (root / "data" / task).glob("import.*")
        convert(source, folder, task=task, lint="-ALL")
        found[task] = features_of(folder)
    return found


def features_of(folder):
    """Return the type of each feature of examples."""
    return {
        name: type(values[0])
        for _, example in stored_examples(folder)
        for name, values in example.items()
    }


@pytest.mark.parametrize("name", SOURCES)
def test_examples(name, run, features_of_csv):
    """Examples have the format, the task and the splits, and the features of a CSV's examples."""
    _, format_, task = SOURCES[name]
    folder = run[f"{name}_examples/Examples"]
    dataset = read_dataset(folder)
    assert (dataset.options["format"], dataset.task) == (format_, task)
    assert {split: dataset.splits[split].examples for split in ("train", "eval")} == {
        "train": COUNT,
        "eval": COUNT,
    }
    found, expected = features_of(folder), features_of_csv[task]
    assert found.items() >= expected.items()
    assert found.keys() - expected.keys() <= DETAILS


@pytest.mark.parametrize("task", CSV)
def test_statistics_and_training(task, run, features_of_csv):
    """Statistics have the features of a CSV's examples; one epoch reads those of all formats."""
    path = run[f"{task}_statistics/ExampleStatistics"]
    [statistics] = tfdv.load_stats_binary(f"{path}/Split-train/FeatureStats.pb").datasets
    assert statistics.num_examples == COUNT
    assert {each.path.step[0] for each in statistics.features} >= features_of_csv[task].keys()

    path = Path(run[f"{task}_trainer/Model"], "Format-Serving/fitted.json")
    names = [name for name, (_, _, its) in SOURCES.items() if its == task]
    assert json.loads(path.read_text()) == {
        "roots": [run[f"{name}_examples/Examples"] for name in names],
        "steps": len(names),
    }
