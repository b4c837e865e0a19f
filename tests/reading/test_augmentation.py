import numpy as np
import pytest
import tensorflow as tf

from recordgen import eval_dataset, train_dataset
from recordgen.reading.augmentation import changed, draw_changes, light_of
from recordgen.reading.options import Augmentation

SEED = (3, 4)

# Rec. 601, as in tf.image.rgb_to_grayscale.
GRAY = np.array([0.299, 0.587, 0.114])

# Pixels are rounded to whole levels.
HALF = 0.5 / 255 + 1e-6


def images(count=64, height=8, width=6, low=0.0, high=1.0):
    drawn = np.random.default_rng(0).uniform(low, high, (count, height, width, 3))
    return tf.constant(drawn, tf.float32)


def augmented(before, seed=SEED, **how):
    """Return images in [0, 1] after only the given changes."""
    levels = one_by_one(tf.constant(before, tf.float32) * 255, drawn(before, seed, **how))
    return levels.numpy() / np.float32(255)


@tf.function  # as in a dataset, and fast
def one_by_one(batch, changes):
    spec = tf.TensorSpec(batch.shape[1:], tf.uint8)
    return tf.map_fn(lambda it: changed(*it), (batch, changes), fn_output_signature=spec)


def drawn(before, seed=SEED, **how):
    """Return only the given changes."""
    count, *size, _ = before.shape
    return draw_changes(Augmentation(**how), count, size, tf.constant(seed, tf.int64))


def gray(pixels):
    return np.asarray(pixels) @ GRAY


def test_mirroring_says_nothing_of_the_light():
    """Whether an image is mirrored does not depend on whether it becomes brighter."""
    before = np.zeros((400, 2, 2, 3), np.float32)
    before[..., 0] = 0.5
    before[:, :, 0] += 0.1  # the left is brighter
    after = augmented(tf.constant(before), flip=True, brightness=0.2)
    is_mirrored = gray(after[:, 0, 0]) < gray(after[:, 0, 1])
    is_brighter = after.mean((1, 2, 3)) > before[0].mean()
    shares = [np.mean(is_brighter[is_mirrored == side]) for side in (True, False)]
    np.testing.assert_allclose(shares, 0.5, atol=0.12)


CHANGES = [
    dict(flip=True),
    dict(brightness=0.5),
    dict(contrast=0.5),
    dict(saturation=0.5),
    dict(crop=0.5),
    dict(flip=True, brightness=1, contrast=1, saturation=1, crop=0.9),
]


@pytest.mark.parametrize("how", CHANGES, ids=str)
def test_changes_depend_on_the_seed_alone_and_stay_in_range(how):
    """One seed gives one result, and pixels stay between 0 and 1."""
    first = augmented(images(), **how)
    np.testing.assert_array_equal(first, augmented(images(), **how))
    assert not np.array_equal(first, augmented(images(), (3, 5), **how))
    assert not np.array_equal(first, images())
    assert first.min() >= 0
    assert first.max() <= 1
    assert first.shape == (64, 8, 6, 3)


def test_about_half_of_the_images_are_mirrored():
    """Each image is as before or mirrored, nothing between."""
    before = images(200).numpy()
    after = augmented(before, flip=True)
    is_same = np.isclose(after, before, atol=HALF).all((1, 2, 3))
    is_mirrored = np.isclose(after, before[:, :, ::-1], atol=HALF).all((1, 2, 3))
    assert (is_same ^ is_mirrored).all()
    assert 60 < is_mirrored.sum() < 140


def test_light_is_drawn_from_the_whole_range():
    """Contrast is up to its share above or below 1, brightness up to its share around 0."""
    light = drawn(images(500), brightness=0.2, contrast=0.4)["light"].numpy()
    contrast = 255 / light[:, 2]
    for drawn_numbers, middle, share in (
        (contrast, 1, 0.4),
        (-light[:, 1] / 255 * contrast, 0, 0.2),
    ):
        assert middle - share - 1e-3 <= drawn_numbers.min() < middle - 0.9 * share
        assert middle + 0.9 * share < drawn_numbers.max() <= middle + share + 1e-3


def test_saturation_keeps_gray():
    """Colours move away from or towards the gray of their pixel."""
    before = images(500, low=0.4, high=0.6).numpy()
    after = augmented(before, saturation=0.5)
    np.testing.assert_allclose(gray(after), gray(before), atol=HALF)
    factors = (after - gray(after)[..., None]) / (before - gray(before)[..., None])
    middle = np.median(factors, (1, 2, 3))
    assert 0.48 <= middle.min() < 0.55
    assert 1.45 < middle.max() <= 1.52


def test_a_crop_is_a_window_resized_to_the_whole_image():
    """Windows have any size and place that the share allows."""
    x = np.broadcast_to(np.linspace(0, 1, 50)[None, :, None], (50, 50, 3))
    after = augmented(np.stack([x] * 300).astype(np.float32), crop=0.4)
    widths = after[:, 0, -1, 0] - after[:, 0, 0, 0]
    assert 0.6 - 2 * HALF <= widths.min() < 0.65
    assert 0.95 < widths.max() <= 1
    assert after[:, 0, 0, 0].max() > 0.2


@pytest.mark.parametrize("names", [["flip"], ["crop"], ["contrast"], []], ids=str)
def test_levels_change_as_floats_do(names):
    """uint8 takes a faster way to the same result, but for numbers halfway between two levels."""
    how = dict(brightness=0.2, contrast=0.2, saturation=0.3, flip=True, crop=0.3)
    how = {name: how[name] for name in names or how}
    levels = tf.cast(images(20) * 255, tf.uint8)
    changes = drawn(levels, **how)
    expected = one_by_one(tf.cast(levels, tf.float32), changes).numpy().astype(int)
    differences = np.abs(one_by_one(levels, changes).numpy() - expected)
    assert differences.max() <= 1
    assert np.mean(differences > 0) < 1e-3


@pytest.mark.parametrize("contrast", [0, 0.001, 0.3, 1, 2])
@pytest.mark.parametrize("brightness", [-1, -0.6, 0, 0.6, 1])
def test_light_is_linear_and_clipped(contrast, brightness):
    """Pixels are those of the formula, computed by NumPy, to half a level: also at the extremes."""
    before = tf.cast(images(1, 40, 30)[0] * 255, tf.uint8).numpy().astype(float)
    before[:] = before[:1]  # all rows are alike, so the mean of some rows is the mean of all
    mean = before.mean()
    expected = np.clip((before - mean) * contrast + mean + 255 * brightness, 0, 255)
    light = {
        "light": light_of(tf.constant(contrast, tf.float32), tf.constant(brightness, tf.float32))
    }
    for dtype in (tf.uint8, tf.float32):
        found = changed(tf.constant(before, dtype), light).numpy()
        # half a level, and the least contrast
        np.testing.assert_allclose(found, expected, atol=0.65)


def test_nothing_is_changed_unless_asked(pets):
    """Without ``augment``, training sees the pixels of evaluation."""
    options = dict(batch_size=40, image_size=(8, 8), seed=1, columns=["image/source_id"])

    def by_id(dataset):
        [(images, _, extras)] = dataset
        return dict(zip(extras["image/source_id"].numpy(), images.numpy(), strict=True))

    expected = by_id(eval_dataset(pets, split="train", **options))
    for how in ({}, {"augment": None}, {"augment": {}}):
        found = by_id(train_dataset(pets, **options, **how))
        for name, image in expected.items():
            np.testing.assert_array_equal(found[name], image)


def test_photo_means_a_random_window_mirroring_and_light(pets):
    """It is short for these changes, whatever ``resize`` says."""
    options = dict(batch_size=40, image_size=(8, 8), seed=1)
    by_hand = dict(flip=True, brightness=0.1, contrast=0.1)
    expected = list(train_dataset(pets, resize="random_crop", augment=by_hand, **options))
    plain = list(train_dataset(pets, **options))
    for given in ({}, {"resize": "fit"}):
        found = list(train_dataset(pets, augment="photo", **given, **options))
        np.testing.assert_array_equal(found[0][0], expected[0][0])
    assert np.abs(found[0][0] - plain[0][0]).mean() > 0.02
