"""A source is a map-style dataset of PyTorch."""

from itertools import chain

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import recordgen
from tests.pages import ROOT


def seen(loader):
    return list(chain.from_iterable(batch["number"].tolist() for batch in loader))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_read_each_example_once(numbers, context):
    """Workers of a loader see each example once, shuffled."""
    source = recordgen.source(numbers)
    source[0]  # its files are open before the fork
    loader = DataLoader(source, 32, shuffle=True, num_workers=2, multiprocessing_context=context)
    found = seen(loader)
    assert sorted(found) == list(range(1000))
    assert found != sorted(found)


def test_batches_of_images(photos):
    """The default collation gives tensors of pixels and of classes."""
    images = recordgen.source(photos).images(32)
    loader = DataLoader(images, 16, num_workers=2)
    pixels, labels = next(iter(loader))
    assert (pixels.shape, pixels.dtype) == ((16, 32, 32, 3), torch.uint8)
    assert (labels.shape, labels.dtype) == ((16,), torch.int64)
    expected, numbers = images.batch(range(16))
    np.testing.assert_array_equal(pixels.numpy(), expected)
    np.testing.assert_array_equal(labels.numpy(), numbers)


def test_pixels_by_torch(photos):
    """They are the default, and differ by at most one level from those that need no PyTorch."""
    source = recordgen.source(photos)
    pixels = source.images((20, 45), method="bilinear").batch(range(20))[0].astype(int)
    by_torch = source.images((20, 45), method="torch").batch(range(20))[0].astype(int)
    assert 0 < np.abs(by_torch - pixels).max() <= 1
    np.testing.assert_array_equal(source.images((20, 45)).batch(range(20))[0], by_torch)


def flipped(pixels):
    return torch.from_numpy(pixels).flip(1)


@pytest.mark.parametrize("workers", [0, 1])
def test_boxes_need_no_function(tmp_path, workers):
    """PyTorch's default collation pads boxes as ``collate`` does, also of transformed images."""
    recordgen.convert(f"{ROOT}/examples/object_detection/digits.csv", tmp_path / "out")
    source = recordgen.source(tmp_path / "out")
    images = source.images(8, boxes="xyxy", layout="CHW", dtype=torch.float32)
    wanted, targets = images.collate(images[:])
    assert 1 < len(targets["count"]) < targets["count"].sum()
    for some in (images, images.map(itself), source.images(8, transform=flipped)):
        [(pixels, found)] = DataLoader(some, len(images), num_workers=workers)
        assert {name: each.dtype for name, each in found.items()} == {
            **{"boxes": torch.float32, "labels": torch.int64, "count": torch.int64}
        }
        np.testing.assert_array_equal(found["labels"], targets["labels"])
        assert isinstance(pixels, torch.Tensor)
    np.testing.assert_array_equal(next(iter(DataLoader(images, len(images))))[0], wanted)
    [items] = DataLoader(images, len(images), collate_fn=list)
    assert [len(target["labels"]) for _, target in items] == targets["count"].tolist()


def itself(item):
    return item


def test_texts_and_entities_are_collated(tmp_path):
    """``collate`` makes batches of pairs that PyTorch's own collation cannot stack."""
    for name in ("text_classification/reviews.csv", "text_entities/travels.jsonl"):
        output = tmp_path / name.partition("/")[0]
        recordgen.convert(str(ROOT / "examples" / name), output)
        pairs = recordgen.source(output).pairs()
        loader = DataLoader(pairs, 4, collate_fn=pairs.collate, num_workers=1)
        for number, batch in enumerate(loader):
            wanted = pairs.collate(pairs[4 * number : 4 * number + 4])
            assert repr(batch) == repr(wanted)
