import itertools
import os
import re

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from recordgen import convert
from tests.conftest import encoded, noise


def case_name(value):
    """Return a parameter's name without addresses: pytest-xdist needs the same in each process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """Write 200 one-coloured images and their import file; image n has red n and label n.

    160 are in train, 40 in eval. A reader can recognise every record by its label.
    """
    folder = tmp_path_factory.mktemp("source")
    rows = []
    for number in range(200):
        side = 4 + number % 5
        pixels = np.zeros((side, 2 * side, 3), np.uint8)
        pixels[..., 0] = number
        Image.fromarray(pixels).save(folder / f"{number}.png")
        rows.append(f"{'VALIDATION' if number % 5 == 0 else 'TRAIN'},{number}.png,{number}\n")
    (folder / "a.csv").write_text("".join(rows))
    return folder


@pytest.fixture(scope="session")
def converted(tmp_path_factory):
    """Return a function that converts an import file, and returns the output as text."""

    def convert_to(source, **options):
        out = str(tmp_path_factory.mktemp("converted") / "out")
        convert(str(source), out, **options)
        return out

    return convert_to


@pytest.fixture(scope="session")
def output(source, converted):
    """The converted source."""
    out = converted(source / "a.csv", shard_mb=0.003, labels="integer")
    assert len(os.listdir(f"{out}/Split-train")) > 2
    return out


@pytest.fixture(scope="session")
def compressed(source, converted):
    """The converted source in compressed shards."""
    return converted(source / "a.csv", shard_mb=0.003, labels="integer", compression="gzip")


@pytest.fixture(params=["output", "compressed"])
def any_output(request):
    """The converted source, plain and compressed."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def partly_labelled(source, converted):
    """Convert twelve train records, seven of them with a label, and eval without labels."""
    rows = [f"TRAIN,{n}.png{f',{n}' if n < 7 else ''}\n" for n in range(12)]
    rows += [f"VALIDATION,{n}.png\n" for n in range(20, 24)]
    (source / "partly.csv").write_text("".join(rows))
    return converted(source / "partly.csv")


CLASSES = ("ant", "cat", "dog", "owl")


def example(features):
    """Serialise a tf.train.Example; each value is a list of one kind, or a single value."""
    message = tf.train.Example()
    for name, value in features.items():
        values = value if isinstance(value, list) else [value]
        feature = message.features.feature[name]
        if not values:
            continue
        if isinstance(values[0], bytes):
            feature.bytes_list.value.extend(values)
        elif isinstance(values[0], int):
            feature.int64_list.value.extend(values)
        else:
            feature.float_list.value.extend(values)
    # Without this, the order of the features differs between processes.
    return message.SerializeToString(deterministic=True)


def write_records(path, records):
    """Write serialised records with TensorFlow's own writer; return the path as text."""
    with tf.io.TFRecordWriter(str(path), "GZIP" if str(path).endswith(".gz") else "") as writer:
        for record in records:
            writer.write(record)
    return str(path)


def pet(number, **more):
    """Return a record as another program may write it: image ``number``, of class number % 4."""
    return example(
        {
            "image/encoded": encoded(noise(seed=number), "JPEG"),
            "image/class/label": number % 4,
            "image/class/text": CLASSES[number % 4].encode(),
            "image/source_id": f"pet {number}".encode(),
            **more,
        }
    )


def ids(dataset, batches=None):
    """Return the source ids (the last part of each batch), in their order."""
    names = (extras["image/source_id"] for *_, extras in itertools.islice(dataset, batches))
    return [item.decode() for some in names for item in some.numpy()]


@pytest.fixture(scope="session")
def pets_csv(tmp_path_factory):
    """60 JPEGs of noise, all different, of four classes; 40 in train, 20 in eval."""
    folder = tmp_path_factory.mktemp("pets")
    rows = []
    for number in range(60):
        image = noise(12 + number % 3, 10 + number % 5, number)
        (folder / f"{number:02d}.jpg").write_bytes(encoded(image, "JPEG", quality=90))
        split = "TRAIN" if number % 3 else "VALIDATION"
        rows.append(f"{split},{number:02d}.jpg,{CLASSES[number % 4]}\n")
    (folder / "pets.csv").write_text("".join(rows))
    return str(folder / "pets.csv")


@pytest.fixture(scope="session")
def pets(pets_csv, converted):
    """The pets in several shards per split."""
    return converted(pets_csv, shard_mb=0.01)


@pytest.fixture(scope="session")
def pets_by_label(pets_csv, converted):
    """The pets in one shard per split and class."""
    return converted(pets_csv, shard_by="label")


@pytest.fixture
def counts_cache(tmp_path, monkeypatch):
    """An empty cache folder of the user, for remembered counts."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder
