import numpy as np
import pytest

from recordgen.access.shards import ShardFile, ShardSet
from recordgen.core.dataset.counts import Split
from recordgen.errors import DataError, UsageError
from recordgen.features import FeatureSpec
from recordgen.reading.options import AUTOTUNE, ReadOptions, RecordOptions, Tuning
from recordgen.reading.plan import class_weights, plan_classes, plan_reading, plan_records
from tests.datasets import dataset_of

MIXED = tuple(ShardFile(f"s{n}", 100, 1_000_000) for n in range(4))


def ours(
    files=MIXED,
    labels=(("cat", 300), ("dog", 100)),
    check="decode",
    vocabulary=None,
    task="image_classification",
    features=None,
):
    """Return shards with their dataset.json."""
    examples = sum(file.examples for file in files)
    split = Split(examples, sum(file.bytes for file in files), dict(labels), ())
    names = tuple(vocabulary or (name for name, _ in labels))
    more = {"options": {"check": check}, "splits": {"train": split}, "features": features or {}}
    return ShardSet(tuple(files), "train", dataset_of(task=task, labels=names, **more))


def by_label(*labels, examples=10):
    """Return shards of one class each."""
    files = [ShardFile(f"{label}.rec", examples, 1000, label) for label in labels]
    return ours(files, [(label, examples) for label in labels if label])


def one_shard(examples, record_bytes, label=None):
    """Return records of one shard and class."""
    return ours([ShardFile("a", examples, examples * record_bytes, label)], [("cat", examples)])


# shards, options, the buffer: all of 400, two batches at least, 64 MB or 16384 records
BUFFERS = [
    (ours(), dict(shuffle=False), 0),
    (ours(), dict(tuning=Tuning(shuffle_buffer=np.int64(7))), 7),
    (ours(), {}, 400),
    (one_shard(100_000, 1_000), {}, 16_384),
    (one_shard(100_000, 64_000), {}, 1_000),
    (one_shard(10_000, 64_000), dict(cache="memory"), 10_000),
    # decoded, an image takes 224 · 224 · 3 bytes
    (one_shard(100_000, 64_000), dict(cache="a/file"), 425),
    (one_shard(100_000, 10_000_000), {}, 64),
    # shards by label and other tools' shards may be sorted: they get a larger buffer
    (one_shard(100_000, 64_000, "cat"), {}, 4_000),
    (ShardSet((ShardFile("a", 100_000, 6_400_000_000),)), {}, 4_000),
]


@pytest.mark.parametrize(("shards", "options", "expected"), BUFFERS)
def test_the_shuffle_buffer_fits_in_memory(shards, options, expected):
    """It is given, or at most all examples."""
    options = ReadOptions(**{"batch_size": 32, "shuffle": True, **options})
    assert plan_reading(shards, options).shuffle_buffer == expected


# shards, options, number of files that are open at the same time
OPEN_FILES = [
    (ours(), {}, AUTOTUNE),
    (ours(), dict(tuning=Tuning(cycle_length=3)), 3),
    (ours(), dict(tuning=Tuning(cycle_length=9)), 4),
    (ours(), dict(shuffle=False), 1),
    (ours(), dict(shard=(1, 4)), 1),  # a file by itself
    (ours(), dict(shard=(1, 5)), AUTOTUNE),
    (by_label("a", "b", "c"), {}, 3),
    (by_label(*map(str, range(100))), {}, 32),
]


@pytest.mark.parametrize(("shards", "options", "expected"), OPEN_FILES)
def test_many_files_are_open_unless_the_order_is_kept(shards, options, expected):
    """Shards by label are all open, up to 32; a share of one file is one."""
    options = ReadOptions(**{"shuffle": True, **options})
    assert plan_reading(shards, options).cycle_length == expected


# the file of 1,000 records, its bytes; consecutive records, bytes that are read ahead
BLOCKS = [
    ("a", 1_000_000, 16, 262_144),
    ("a", 100_000_000, 16, 0),
    ("a", 500_000_000, 4, 0),
    ("a", 5_000_000_000, 1, 0),
    ("gs://bucket/a", 100_000_000, 16, 262_144),
    ("a", None, 16, 262_144),
]


@pytest.mark.parametrize(("file", "size", "records", "ahead"), BLOCKS)
def test_large_records_are_read_in_short_blocks(file, size, records, ahead):
    """Those of local files without a buffer, which would be one more copy."""
    plan = plan_records(ShardSet((ShardFile(file, 1000, size),)), RecordOptions())
    assert (plan.block_length, plan.read_buffer) == (records, ahead)


def test_every_worker_reads_a_part_of_each_class():
    """Each worker has a part of each file by label."""
    shards = by_label("a", "b", "c", "d")
    plans = [plan_reading(shards, ReadOptions(shard=(index, 2))) for index in range(2)]
    assert [len(plan.files) for plan in plans] == [4, 4]
    assert [[piece.start for piece in plan.pieces] for plan in plans] == [[0] * 4, [5] * 4]
    assert [plan.examples for plan in plans] == [20, 20]


# 400 records of 10 kB with images of 30 kB: cache_bytes, other options; the stage, its bytes.
CACHES = [
    (12_000_000, {}, ("images", 12_000_000)),
    (11_999_999, {}, ("records", 4_000_000)),
    (3_999_999, {}, ("nothing", 4_000_000)),
    (8_000_000, dict(only=bool), ("records", None)),
    (12_000_000, dict(only=["cat", "dog"]), ("images", 12_000_000)),
    (8_000_000, dict(only=["cat"]), ("records", 3_000_000)),
    (6_000_000, dict(shard=(0, 2)), ("images", 6_000_000)),
    (99_000_000, dict(resize="random_crop"), ("records", 4_000_000)),
]


@pytest.mark.parametrize(("room", "options", "expected"), CACHES)
@pytest.mark.parametrize("path", ["", "a/file"])
def test_images_are_cached_if_all_fit_else_records(path, room, options, expected):
    """A cache holds all decoded images, or else all records, or else nothing."""
    given = dict(image_size=(100, 100), cache=path or "memory", **options)
    options = given | dict(tuning=Tuning(cache_bytes=room))
    cache = plan_reading(ours(), ReadOptions(**options)).cache
    assert (cache.stage, cache.bytes, cache.path) == (*expected, path)


def test_a_printed_plan_has_files_examples_buffer_and_cache():
    """Each line has its number, and that of the share."""
    options = ReadOptions(image_size=(10, 10), cache="a/file", shard=(1, 5), shuffle=True)
    lines = {line.split()[0]: line for line in str(plan_reading(ours(), options)).splitlines()}
    facts = {"files": "2,", "examples": "80", "shuffle": "80", "cache": "24.0 kB in a/file"}
    assert all(fact in lines.pop(name) for name, fact in facts.items())
    assert list(lines) == ["worker"]


def test_a_subset_of_classes_is_a_subset_of_files():
    """Shards by label need no filter; unlabelled shards are read on request alone."""
    shards = by_label("ant", "cat", "dog", "")
    plan = plan_reading(shards, ReadOptions(only={"dog", "ant"}))
    assert plan.files == ("ant.rec", "dog.rec")
    assert plan.examples == 20
    assert not plan.classes.filters
    assert plan_reading(shards, ReadOptions()).files == ("ant.rec", "cat.rec", "dog.rec")
    everything = plan_reading(shards, ReadOptions(label_mode=None))
    assert (len(everything.files), everything.examples) == (4, 40)


def test_the_order_of_labels_does_not_matter():
    """The order of a set differs between processes, but must not affect the name of a cache."""
    shards = by_label(*"abcdefgh")
    found = [plan_reading(shards, ReadOptions(only=list(names))) for names in ("ghab", "bahg")]
    assert repr(found[0]) == repr(found[1])
    assert found[0].classes.wanted == ("a", "b", "g", "h")


OWLS = ours(vocabulary=["cat", "dog", "owl"])


def test_balanced_weights():
    """scikit-learn's rule: all / (classes · examples of the class); an empty class weighs 0."""
    classes = plan_classes(OWLS, ReadOptions(), "image_classification")
    assert class_weights("balanced", classes) == (400 / (2 * 300), 400 / (2 * 100), 0.0)
    assert class_weights({"cat": 1, "dog": 3}, classes) == (1.0, 3.0, 0.0)
    for weights, message in (({"cat": 1}, "'dog'"), ({"cat": 1, "dgo": 1}, r"weights.*'dgo'")):
        with pytest.raises(UsageError, match=message):
            class_weights(weights, classes)
    classes = plan_classes(ShardSet(MIXED), ReadOptions(vocabulary=["cat"]), "image_classification")
    with pytest.raises(UsageError, match=r"weights.*dataset\.json"):
        class_weights("balanced", classes)
    assert class_weights({"cat": 2.0}, classes) == (2.0,)


# shards, options, error, message
MISFITS = [
    (OWLS, dict(only=["cta"]), UsageError, r"only.*'cta'"),
    (OWLS, dict(only=["owl"]), DataError, r"'train'.*'owl'"),
    (OWLS, dict(vocabulary=["cat"]), DataError, r"'dog'.*vocabulary"),
    (OWLS, dict(vocabulary=["cat", "dog"], only=["dgo"]), UsageError, r"only.*'dgo'"),
    (OWLS, dict(shard=(0, 401)), UsageError, "shard"),
    (ours(), dict(boxes="xyxy"), UsageError, r"boxes.*image_classification"),
    (ours(), dict(padding=3), UsageError, "padding"),
    (ours(task="image_multi_label"), dict(padding="ragged"), UsageError, "padding"),
    (ShardSet(MIXED), dict(boxes={"min_visible": 0.5}), UsageError, r"boxes.*task"),
    (ours(MIXED, []), {}, DataError, r"400.*label_mode"),
    (ours((ShardFile("a", 0, 0),), []), {}, DataError, r"split.*'train'"),
]


@pytest.mark.parametrize(("shards", "options", "error", "message"), MISFITS)
def test_what_does_not_fit_is_an_error_before_a_file_is_opened(shards, options, error, message):
    """Options of other tasks, unknown classes, and splits with nothing to read."""
    with pytest.raises(error, match=message):
        plan_reading(shards, ReadOptions(**options))


SOMETHING = {"x": FeatureSpec("int64")}


# shards, options; task, label mode
TASKS = [
    (ours(), {}, "image_classification", "int"),
    (ours(), dict(label_mode="categorical"), "image_classification", "categorical"),
    (ours(task="image_multi_label"), {}, "image_multi_label", "multi_hot"),
    (ours(task="image_multi_label"), dict(label_mode="int"), "image_multi_label", "int"),
    (ours(task="object_detection"), {}, "object_detection", "boxes"),
    (ours(task="object_detection"), dict(task="object_detection"), "object_detection", "boxes"),
    (ours(task="examples", features=SOMETHING), {}, "image_classification", "int"),
    (ShardSet(MIXED), {}, "image_classification", "int"),
    (ShardSet(MIXED), dict(task="object_detection"), "object_detection", "boxes"),
]


@pytest.mark.parametrize(("shards", "options", "task", "mode"), TASKS)
def test_the_task_is_that_of_dataset_json_or_the_option(shards, options, task, mode):
    """The label mode follows from the task, unless it is given."""
    plan = plan_reading(shards, ReadOptions(**options))
    assert (plan.task, plan.classes.mode) == (task, mode)


@pytest.mark.parametrize(("check", "expected"), [("decode", True), ("header", False)])
def test_only_decoded_payloads_are_known_to_decode(check, expected):
    """A header that was checked is no promise."""
    assert plan_reading(ours(check=check), ReadOptions()).is_checked is expected
