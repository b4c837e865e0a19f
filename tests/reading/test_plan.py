from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recordgen.dataset.manifest import Dataset, ImageStats, RowCounts, Split
from recordgen.errors import DataError, UsageError
from recordgen.features import FeatureSpec
from recordgen.reading.caching import image_bytes
from recordgen.reading.classes import class_weights, plan_classes
from recordgen.reading.options import ReadOptions, RecordOptions, decode_options
from recordgen.reading.plan import plan_reading, plan_records
from recordgen.reading.shards import ShardFile, ShardSet
from recordgen.reading.tuning import AUTOTUNE, Tuning

MIXED = tuple(ShardFile(f"s{n}", 100, 1_000_000) for n in range(4))


def ours(
    files=MIXED,
    labels=(("cat", 300), ("dog", 100)),
    check="decode",
    vocabulary=None,
    task="image_classification",
    features=None,
):
    """Return shards with their dataset.json, as plans see them."""
    examples = sum(file.examples for file in files)
    split = Split(examples, sum(file.bytes for file in files), dict(labels), ())
    dataset = Dataset(
        task=task,
        recordgen_version="1",
        source=(),
        seed=0,
        options={"check": check},
        compression="none",
        label_kind="text",
        labels=tuple(vocabulary or (name for name, _ in labels)),
        splits={"train": split},
        rows=RowCounts(),
        reencoded={},
        warnings=(),
        digest="",
        features=features or {},
    )
    return ShardSet(tuple(files), "train", dataset)


def by_label(*labels, examples=10):
    """Return shards of one class each."""
    files = [ShardFile(f"{label}.rec", examples, 1000, label) for label in labels]
    return ours(files, [(label, examples) for label in labels if label])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # what is asked for, the buffer: all of 400, two batches at least, 64 MB or 16384 records
        ({}, 0),
        (dict(shuffle=True, tuning=Tuning(shuffle_buffer=np.int64(7))), 7),
        (dict(shuffle=True), 400),
    ],
)
def test_shuffle_buffer(options, expected):
    """A number is taken as it is; automatically no more than there is."""
    assert plan_reading(ours(), ReadOptions(**options)).shuffle_buffer == expected


@pytest.mark.parametrize(
    ("examples", "record_bytes", "cache", "expected"),
    [
        # of one shard, its records' size, what is kept, the buffer
        (100_000, 1_000, None, 16_384),
        (100_000, 64_000, None, 1_000),
        (100_000, 64_000, "memory", 100_000),
        (100_000, 64_000, "a/file", 425),  # decoded, an image takes 224 · 224 · 3 bytes
        (100_000, 10_000_000, None, 64),
    ],
)
def test_shuffle_buffer_fits_in_memory(examples, record_bytes, cache, expected):
    """It holds 64 MB of mixed records, at least two batches, and all that is in memory anyway."""
    shards = ours([ShardFile("a", examples, examples * record_bytes)], [("cat", examples)])
    options = ReadOptions(batch_size=32, shuffle=True, cache=cache)
    assert plan_reading(shards, options).shuffle_buffer == expected


def test_shuffle_buffer_of_sorted_records():
    """Shards of one class each, and those of others, may be sorted: they get a larger buffer."""
    file = ShardFile("a", 100_000, 6_400_000_000)
    foreign = ShardSet((file,))
    assert plan_records(foreign, RecordOptions(shuffle=True)).shuffle_buffer == 4_000
    sorted_ = ours([replace(file, label="cat")], [("cat", 100_000)])
    assert plan_reading(sorted_, ReadOptions(shuffle=True)).shuffle_buffer == 4_000


@pytest.mark.parametrize(
    ("shards", "options", "expected"),
    [
        # shards, what is asked for, files that are open at the same time
        (ours(), {}, AUTOTUNE),
        (ours(), dict(tuning=Tuning(cycle_length=3)), 3),
        (ours(), dict(tuning=Tuning(cycle_length=9)), 4),
        (ours(), dict(shuffle=False), 1),
        (ours(), dict(shard=(1, 4)), AUTOTUNE),
        (ours(), dict(shard=(1, 5)), AUTOTUNE),
        (by_label("a", "b", "c"), {}, 3),
        (by_label(*map(str, range(100))), {}, 32),
    ],
)
def test_cycle_length(shards, options, expected):
    """As many files as mix well; one after the other where the order is kept."""
    options = ReadOptions(**{"shuffle": True, **options})
    assert plan_reading(shards, options).cycle_length == expected


@pytest.mark.parametrize(
    ("examples", "size", "expected"),
    [
        # records of a file, its bytes; how many are taken at a time
        (1000, 1_000_000, 16),
        (1000, 500_000_000, 4),
        (1000, 5_000_000_000, 1),
    ],
)
def test_block_length(examples, size, expected):
    """Few large records at a time: tf.data holds two blocks of every open file."""
    plan = plan_records(ShardSet((ShardFile("a", examples, size),)), RecordOptions())
    assert plan.block_length == expected


def test_workers_share_classes():
    """With one class in a file every worker reads a part of each: none must miss a class."""
    plans = [
        plan_reading(by_label("a", "b", "c", "d"), ReadOptions(shard=(index, 2)))
        for index in range(2)
    ]
    assert [len(plan.files) for plan in plans] == [4, 4]
    assert [[piece.start for piece in plan.pieces] for plan in plans] == [[0] * 4, [5] * 4]
    assert [plan.examples for plan in plans] == [20, 20]


def test_numpy_numbers():
    """NumPy's integers are numbers like others."""
    options = decode_options(ReadOptions, {"image_size": np.int64(8), "batch_size": np.int32(3)})
    assert plan_reading(ours(), options).shuffle_buffer == 0
    assert options.is_ordered is True


# Of 400 records of 10 kB, in images of 30 kB: what may be used, what else is asked for; what is
# kept, and how many bytes of it, of how many examples.
CACHES = [
    (12_000_000, {}, [("images", 12_000_000, 400)]),
    (11_999_999, {}, [("images", 399 * 30_000, 399), ("records", 10_000, 1)]),
    (8_000_000, {}, [("images", 200 * 30_000, 200), ("records", 2_000_000, 200)]),
    (4_300_000, {}, [("records", 4_000_000, 400)]),  # 15 images are not worth it
    (3_999_999, {}, [("images", 133 * 30_000, 133), ("nothing", 2_670_000, 267)]),
    (500_000, {}, [("nothing", 4_000_000, 400)]),
    (8_000_000, dict(predicate=bool), [("records", None, None)]),
    (12_000_000, dict(labels=["cat", "dog"]), [("images", 12_000_000, 400)]),
    (8_000_000, dict(labels=["cat"]), [("records", 3_000_000, 300)]),
    (12_000_000, dict(shard=(0, 2)), [("images", 6_000_000, 200)]),
    (3_000_000, dict(shard=(0, 2)), [("images", 50 * 30_000, 50), ("records", 1_500_000, 150)]),
    # Pictures of unknown size are taken for 3:2 ones.
    (400 * 59_512, dict(resize="random_crop"), [("pictures", 400 * 59_512, 400)]),
    (4_000_000, dict(resize="random_crop"), [("records", 4_000_000, 400)]),
]


@pytest.mark.parametrize(("room", "options", "expected"), CACHES)
@pytest.mark.parametrize("path", ["", "a/file"])
def test_what_is_kept(path, room, options, expected):
    """Images, as many as fit, beside the records of the others."""
    options = dict(image_size=(100, 100), cache=path or "memory", cache_bytes=room, **options)
    plan = plan_reading(ours(), ReadOptions(**options))
    parts = plan.parts or (plan,)
    assert [(part.cache.stage, part.cache.bytes, part.examples) for part in parts] == expected
    assert {part.cache.path for part in parts} == {path}
    if plan.parts:
        assert plan.examples == sum(part.examples for part in parts)
        assert all(part.examples == sum(p.count for p in part.pieces) for part in parts)


def test_unchecked_images_are_kept_if_they_are_not_cropped():
    """They are decoded in batches of one shape, because some may not decode."""
    options = ReadOptions(image_size=(10, 10), cache="memory")
    assert plan_reading(ours(check="none"), options).cache.stage == "images"
    options = ReadOptions(image_size=(10, 10), cache="memory", resize="random_crop")
    assert plan_reading(ours(check="none"), options).cache.stage == "records"


def test_the_size_of_pictures():
    """At most what they have; of one size exactly, else as of 3:2 photos."""
    options = ReadOptions(image_size=(100, 100), resize="random_crop", crop_margin=1.2)
    sizes = {(200, 400): 120 * 240, (50, 60): 50 * 60, (480, 360): 160 * 120}
    for (height, width), pixels in sizes.items():
        same = ImageStats({"jpeg": 1}, (height, height), (width, width))
        assert image_bytes(options, same) == 3 * pixels
    assert image_bytes(options, ImageStats({"jpeg": 2}, (100, 400), (90, 300))) == 3 * 21_600
    assert image_bytes(options, ImageStats({"jpeg": 2}, (30, 40), (50, 60))) == 3 * 40 * 60
    assert image_bytes(options, None) == 3 * 21_600


def test_plan_says_what_it_is():
    """Printed, a plan names files, examples, buffer and cache with its size."""
    options = ReadOptions(image_size=(10, 10), cache="a/file", shard=(1, 5), shuffle=True)
    text = str(plan_reading(ours(), options))
    assert text.splitlines() == [
        "files     2, AUTOTUNE at a time",
        "examples  80",
        "shuffle   buffer of 80",
        "cache     decoded images (uint8), before they are augmented, 0.0 MB in a/file",
        "worker    2 files, whole or in part",
    ]
    plain = str(plan_reading(ours(), ReadOptions()))
    assert plain.splitlines()[2:] == ["shuffle   no", "cache     no"]


def test_a_subset_of_classes_is_a_subset_of_files():
    """Sharded by label, only files of the wanted classes are opened, and none is filtered."""
    shards = by_label("ant", "cat", "dog", "")
    plan = plan_reading(shards, ReadOptions(labels={"dog", "ant"}))
    assert plan.files == ("ant.rec", "dog.rec")
    assert plan.examples == 20
    assert not plan.classes.filters
    labelled = plan_reading(shards, ReadOptions())
    assert labelled.files == ("ant.rec", "cat.rec", "dog.rec")
    everything = plan_reading(shards, ReadOptions(label_mode=None))
    assert (len(everything.files), everything.examples) == (4, 40)


def test_mixed_files_are_filtered():
    """With mixed labels all files are opened; counts still come from dataset.json."""
    plan = plan_reading(ours(), ReadOptions(labels=["dog"]))
    assert (len(plan.files), plan.examples, plan.classes.filters) == (4, 100, True)


def test_the_order_of_labels_does_not_matter():
    """A set has another order in every process, and a cache must be found again all the same."""
    shards = by_label(*"abcdefgh")
    found = [plan_reading(shards, ReadOptions(labels=list(names))) for names in ("ghab", "bahg")]
    assert repr(found[0]) == repr(found[1])
    assert found[0].classes.wanted == ("a", "b", "g", "h")


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        # what is asked for, the number of stored labels ant, cat, dog
        ({}, None),
        (dict(labels=["dog"]), (-1, -1, 2)),
        (dict(vocabulary=["dog", "ant", "cat"]), (1, 2, 0)),
        (dict(vocabulary=["owl", "dog", "cat"], labels=["cat"]), (-1, 2, -1)),
    ],
)
def test_numbers(options, numbers):
    """Classes keep the numbers of labels.txt, or take those of the vocabulary."""
    shards = ours(labels=[("cat", 5), ("dog", 5)], vocabulary=["ant", "cat", "dog"])
    assert plan_classes(shards, ReadOptions(**options), "image_classification").numbers == numbers


def test_balanced_weights():
    """scikit-learn's rule: all / (classes · of this class); a class that is not read weighs 0."""
    shards = ours(vocabulary=["cat", "dog", "owl"])
    classes = plan_classes(shards, ReadOptions(), "image_classification")
    assert class_weights("balanced", classes) == (400 / (2 * 300), 400 / (2 * 100), 0.0)
    assert class_weights({"cat": 1, "dog": 3}, classes) == (1.0, 3.0, 0.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        # what is asked for, the error, what it says
        (dict(labels=["cta"]), UsageError, "labels: no class 'cta'; did you mean 'cat'?"),
        (dict(labels=["x"]), UsageError, r"labels: no class 'x'; there are \['cat', 'dog'"),
        (dict(labels=["owl"]), DataError, r"'train' has no example of \['owl'\]; it has \['cat'"),
        (
            dict(vocabulary=["cat"]),
            DataError,
            r"label 'dog' \(100 examples in train\) is not in the vocabulary \['cat'\]; add it, or",
        ),
        (
            dict(vocabulary=["cat", "dog"], labels=["dgo"]),
            UsageError,
            "labels: no class 'dgo'; did you mean 'dog'?",
        ),
        (dict(shard=(0, 401)), UsageError, r"shard=\(0, 401\): nothing is left for this worker; u"),
    ],
)
def test_errors(options, error, message):
    """What does not go with the data is said before a file is opened."""
    shards = ours(vocabulary=["cat", "dog", "owl"])
    with pytest.raises(error, match=message):
        plan_reading(shards, ReadOptions(**options))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        # weights, what is said
        ({"cat": 1}, r"one for each class \(none for \['dog'\]\)"),
        ({"cat": 1, "dgo": 1}, "weights: no class 'dgo'; did you mean 'dog'?"),
    ],
)
def test_weights_errors(weights, message):
    """Every class that is read has a weight, and every weight a class."""
    with pytest.raises(UsageError, match=message):
        class_weights(weights, plan_classes(ours(), ReadOptions(), "image_classification"))


def test_weights_need_counts():
    """Nothing is known of the files of others, so nothing can be balanced."""
    classes = plan_classes(ShardSet(MIXED), ReadOptions(vocabulary=["cat"]), "image_classification")
    with pytest.raises(UsageError, match=r"weights need a dataset\.json that counts the classes"):
        class_weights("balanced", classes)
    assert class_weights({"cat": 2.0}, classes) == (2.0,)


@pytest.mark.parametrize(
    ("labels", "files", "message"),
    [
        # labels of the split, its shards, what is said
        ([], MIXED, r"no labelled example \(400 unlabelled\); label_mode=None reads them"),
        ([], (ShardFile("a", 0, 0),), "split 'train' has no examples"),
    ],
)
def test_nothing_to_read(labels, files, message):
    """A split without what is wanted would be an endless wait, so it is an error."""
    with pytest.raises(DataError, match=message):
        plan_reading(ours(files, labels), ReadOptions())


def test_empty_files_are_not_opened():
    """Programs that write in parallel leave empty shards; they hold nothing to look at."""
    files = (ShardFile("a", 0, 0), ShardFile("b", 5, 50))
    assert plan_records(ShardSet(files), RecordOptions()).files == ("b",)
    with pytest.raises(DataError, match="a: no record in 1 files"):
        plan_records(ShardSet(files[:1]), RecordOptions())


SOMETHING = {"x": FeatureSpec("int64")}


@pytest.mark.parametrize(
    ("shards", "options", "task", "mode"),
    [
        # what is read, what is asked for; what examples are for, and what is made of labels
        (ours(), {}, "image_classification", "int"),
        (ours(), dict(label_mode="categorical"), "image_classification", "categorical"),
        (ours(task="image_multi_label"), {}, "image_multi_label", "multi_hot"),
        (ours(task="image_multi_label"), dict(label_mode="int"), "image_multi_label", "int"),
        (ours(task="object_detection"), {}, "object_detection", "boxes"),
        (ours(task="object_detection"), dict(task="object_detection"), "object_detection", "boxes"),
        (ours(task="examples", features=SOMETHING), {}, "image_classification", "int"),
        (ShardSet(MIXED), {}, "image_classification", "int"),
        (ShardSet(MIXED), dict(task="object_detection"), "object_detection", "boxes"),
    ],
)
def test_task(shards, options, task, mode):
    """dataset.json says what examples are for; of what others wrote the caller does."""
    plan = plan_reading(shards, ReadOptions(**options))
    assert (plan.task, plan.classes.mode) == (task, mode)


@pytest.mark.parametrize("options", [{}, dict(labels=["dog"]), dict(vocabulary=["dog", "cat"])])
def test_all_images_are_read_for_their_boxes(options):
    """Also images without boxes, or without wanted ones: nobody has to look at the records."""
    plan = plan_reading(ours(task="object_detection"), ReadOptions(**options))
    assert (plan.examples, plan.classes.filters) == (400, False)
    foreign = plan_reading(ShardSet(MIXED), ReadOptions(task="object_detection", **options))
    assert (foreign.examples, foreign.classes.filters) == (400, False)


@pytest.mark.parametrize(
    ("shards", "options", "message"),
    [
        # what is read, what is asked for, what is said
        (
            ours(),
            dict(box_format="xyxy"),
            r"box_format is for boxes, and .* \(image_classification\); remove it$",
        ),
        (ours(), dict(max_boxes=3), "max_boxes is for boxes"),
        (ours(task="image_multi_label"), dict(boxes="ragged"), "boxes is for boxes"),
        (
            ShardSet(MIXED),
            dict(min_visible=0.5),
            "min_visible is for boxes.*; remove it, or give task='object_detection'",
        ),
    ],
)
def test_options_of_other_tasks(shards, options, message):
    """What has no meaning for the data is refused, with the remedy."""
    with pytest.raises(UsageError, match=message):
        plan_reading(shards, ReadOptions(**options))


@pytest.mark.parametrize(("check", "expected"), [("decode", True), ("header", False)])
def test_is_checked(check, expected):
    """Only what was decoded once is known to decode."""
    assert plan_reading(ours(check=check), ReadOptions()).is_checked is expected
