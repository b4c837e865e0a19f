"""Measures of pictures: copies have close hashes, and faults are found."""

import re

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from recordgen.checks.examples import PICTURE_CHECKS
from recordgen.measures import pictures
from recordgen.measures.likeness import are_alike, count_bits, find_alike
from recordgen.measures.pictures import SIDE, Looks, PictureFacts, look_at, measured
from recordgen.registry import CHECKS
from tests.checks.photos import scene, small_jpeg
from tests.conftest import encoded

SCENE = scene()


def facts_of(*images, quality=92):
    jpegs = [encoded(image, "JPEG", quality=quality) for image in images]
    return measured(look_at([small_jpeg(data) for data in jpegs]))


def of_levels(*thumbnails, sharpness=1):
    count = len(thumbnails)
    return measured(Looks(np.stack(thumbnails).astype(np.uint8), np.full(count, sharpness)))


def found(facts, **thresholds):
    wanted = {**NEVER, **thresholds} if thresholds else DEFAULTS
    results = {check.code: check().of_pictures(facts, wanted) for check in PICTURE_CHECKS}
    return {
        code: [result.message(place) for place in range(len(result.rows))]
        for code, result in results.items()
        if len(result.rows)
    }


DEFAULTS = {code: check.threshold for code, check in CHECKS.items() if check.threshold}
NEVER = {"ONE_COLOUR": 0, "DARK": 0, "LIGHT": 255, "BLURRED": 0}

ROWS, COLUMNS = np.indices((SIDE, SIDE))
RAMP = COLUMNS * 8


@pytest.fixture(scope="module")
def original():
    return facts_of(SCENE)


COPIES = [
    pytest.param(lambda image: image, id="re-encode"),
    pytest.param(lambda image: image.resize((400, 300)), id="resize"),
    pytest.param(lambda image: image.resize((251, 187)), id="halve"),
    pytest.param(lambda image: ImageEnhance.Brightness(image).enhance(0.7), id="darken"),
    pytest.param(lambda image: ImageEnhance.Brightness(image).enhance(1.1), id="brighten"),
    pytest.param(lambda image: ImageOps.grayscale(image).convert("RGB"), id="gray"),
    pytest.param(lambda image: image.filter(ImageFilter.GaussianBlur(2)), id="blur"),
]


@pytest.mark.parametrize("change", COPIES)
def test_copies_have_close_hashes(original, change):
    """A changed copy keeps a close hash and an alike signature."""
    copy = facts_of(change(SCENE), quality=60)
    assert count_bits(original.perceptual_hash ^ copy.perceptual_hash)[0] <= 3
    assert are_alike(original.signature, copy.signature).tolist() == [True]


def test_other_pictures_have_other_hashes(original):
    """A flipped picture is another picture: half of its bits differ."""
    others = facts_of(
        ImageOps.mirror(SCENE), SCENE.rotate(180), scene().resize((375, 500)).crop((0, 0, 375, 300))
    )
    assert (count_bits(original.perceptual_hash ^ others.perceptual_hash) > 10).all()
    assert not are_alike(np.repeat(original.signature, 3, axis=0), others.signature).any()


def test_the_hash_of_given_pixels_is_the_same_everywhere():
    """Hashes of other versions and machines are compared, so they must not change."""
    pixels = [(ROWS * ROWS * 7 + COLUMNS * 13 * step) % 256 for step in (1, 2, 3)]
    hashes = [f"{value:016x}" for value in of_levels(*pixels).perceptual_hash]
    assert hashes == ["324044897818ca10", "0348301828010880", "c161692020518842"]


def test_signatures_are_averages_of_4_by_4():
    """Each value of a signature is the mean of a 4 by 4 block."""
    found = pictures.signatures(RAMP[None].astype(np.uint8))
    assert found[0, 3].tolist() == list(range(12, 256, 32))


def test_many_at_once_are_measured_as_one_by_one():
    """Facts do not depend on how many pictures are measured together."""
    thumbnails = [(RAMP + step * ROWS) % 256 for step in range(5)]
    for number, thumbnail in enumerate(thumbnails):
        for one, of_all in zip(of_levels(thumbnail), of_levels(*thumbnails), strict=True):
            assert np.array_equal(one[0], of_all[number], equal_nan=one.dtype.kind == "f")
            assert one.dtype == of_all.dtype


def test_no_picture_has_no_facts():
    """Without a picture, every measure is missing."""
    assert {len(each) for each in measured(look_at([]))} == {0}


def test_alike_is_what_rises_and_falls_together():
    """Neither brightness nor contrast matters; pictures without contrast are alike."""
    flat = RAMP * 0
    pairs = [(RAMP, RAMP // 2 + 9), (RAMP, RAMP.T), (RAMP, 255 - RAMP), (flat, flat + 9)]
    one, other = np.array(pairs, np.uint8).swapaxes(0, 1)
    assert are_alike(one, other).tolist() == [True, False, False, True]


def test_copies_and_mirror_images_are_one_group():
    """A picture without contrast is in no group, although all such pictures share a hash."""
    plain = Image.new("RGB", (300, 300), "gray")
    other = scene().transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    facts = facts_of(plain, SCENE, other, ImageOps.mirror(SCENE), SCENE.resize((400, 300)), plain)
    assert find_alike(facts).tolist() == [0, 1, 2, 1, 1, 5]


@pytest.mark.parametrize("bits", [0, 4], ids=["equal hashes", "close hashes"])
def test_near_duplicates_among_forms(original, bits):
    """Each of 300 forms with nearly one hash is in a group with its copy only."""
    random = np.random.default_rng(0)
    forms = random.uniform(60, 200, (8, 8)) + random.normal(0, 25, (300, 8, 8))
    copies = forms * random.uniform(0.9, 1.1, (300, 1, 1)) + random.normal(0, 2, forms.shape)
    both = np.concatenate([forms, copies]).clip(0, 255).astype(np.uint8)
    flips = [random.choice(64, bits, replace=False).astype(np.uint64) for _ in forms]
    spread = np.array([np.bitwise_or.reduce(np.uint64(1) << flip, initial=0) for flip in flips])
    hashes = original.perceptual_hash[0] ^ np.concatenate([spread, spread]).astype(np.uint64)
    facts = PictureFacts(*(np.repeat(each, len(both), axis=0) for each in original))
    facts = facts._replace(signature=both, perceptual_hash=hashes)
    assert are_alike(both[:300], both[300:]).all()
    assert find_alike(facts).tolist() == [*range(300)] * 2


def test_crowds_are_told(original):
    """Their pairs may be missed; 300 pictures with one hash and their mirror images are one."""
    told = []
    facts = PictureFacts(*(np.repeat(each, 300, axis=0) for each in original))
    others = np.random.default_rng(0).integers(0, 256, (300, 8, 8)).astype(np.uint8)
    find_alike(facts._replace(signature=others), on_crowd=told.append)
    assert told == [600]
    find_alike(facts_of(SCENE), on_crowd=told.append)
    assert len(told) == 1


def test_mirrored_hashes_are_those_of_mirrored_thumbnails():
    """A mirrored hash is computed from the hash alone."""
    pixels = np.random.default_rng(0).integers(0, 256, (20, SIDE, SIDE), dtype=np.uint8)
    expected = pictures.perceptual_hashes(pixels[:, :, ::-1])
    found = pictures.mirrored_hashes(pictures.perceptual_hashes(pixels))
    assert found.tolist() == expected.tolist()


def test_what_is_wrong_is_said_with_its_number():
    """A finding has the measure and the threshold of its code."""
    dark, light = RAMP // 8, 224 + RAMP // 8
    facts = of_levels(RAMP, dark, light, np.full((SIDE, SIDE), 3))
    odd = found(facts) | found(of_levels(RAMP, sharpness=0.25))
    numbers = {code: re.findall(r"[\d.]*\d", " ".join(texts)) for code, texts in odd.items()}
    assert numbers == {
        "DARK": ["99", "31", "255", "40"],
        "LIGHT": ["99", "224", "255", "215"],
        "ONE_COLOUR": ["0.0", "255", "3", "2"],
        "BLURRED": ["0.25", "0.3", "1"],
    }


@pytest.mark.parametrize("level", [0, 128, 255])
def test_one_colour_is_all_that_is_said(level):
    """A picture of one colour has no sharp edge, but that is not another finding."""
    plain = of_levels(np.full((SIDE, SIDE), level), sharpness=0)
    assert list(found(plain)) == ["ONE_COLOUR"]


@pytest.mark.parametrize(
    ("code", "at", "beyond"),
    [("DARK", 252, 253), ("LIGHT", 4, 3), ("BLURRED", 0.5, 0.51), ("ONE_COLOUR", 73, 74)],
)
def test_thresholds_are_not_beyond_themselves(code, at, beyond):
    """A picture exactly at a threshold isn't found, one just beyond it is."""
    facts = of_levels(RAMP + 4, sharpness=0.5)
    assert found(facts, **{code: at}) == {}
    assert list(found(facts, **{code: beyond})) == [code]


def test_a_blurred_photo_is_found():
    """A blurred copy of a sharp photo is found, the photo isn't."""
    assert found(facts_of(SCENE)) == {}
    assert list(found(facts_of(SCENE.filter(ImageFilter.GaussianBlur(16))))) == ["BLURRED"]
