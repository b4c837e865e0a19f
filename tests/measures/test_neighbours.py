"""Near-duplicates among hashes: the same groups as from all pairs, with fewer comparisons."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordgen.measures import likeness
from recordgen.measures.likeness import MAX_DISTANCE, count_bits
from tests.conftest import peak_of

ROWS = 1 << 17


def hashes(*values):
    return np.array(values, np.uint64)


def find_neighbours(
    values, count=None, usable=True, alike=lambda one, _: one >= 0, keys_of=lambda it: [it * 0]
):
    """By default, all are usable and alike, and share a key."""
    usable = np.full(len(values), usable)
    return likeness.find_neighbours(values, count or len(values), usable, alike, keys_of, abs)


def flipped(value, bits):
    for bit in bits:
        value ^= 1 << bit
    return value


def random_hashes(count):
    return np.random.default_rng(0).integers(0, 2**64, count, dtype=np.uint64)


def groups_of_all_pairs(values):
    close = count_bits(values[:, None] ^ values[None]) <= MAX_DISTANCE
    groups = np.arange(len(values))
    while True:
        lower = np.where(close, groups[None], len(values)).min(axis=1, initial=len(values))
        if np.array_equal(lower, groups):
            return groups
        groups = lower


@st.composite
def families(draw):
    """Return random hashes that differ by a few bits from a few others."""
    parents = draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4))
    bits = st.sets(st.integers(0, 63), max_size=4)
    children = st.builds(flipped, st.sampled_from(parents), bits)
    return np.array(draw(st.lists(children, max_size=24)), np.uint64)


@given(families())
def test_groups_are_those_of_all_pairs(values):
    """The index misses no pair."""
    assert find_neighbours(values).tolist() == groups_of_all_pairs(values).tolist()


@pytest.mark.parametrize(
    "bits", [(), (0, 1, 2), (15, 16, 63), (3, 20, 40), (17, 33, 49), (0, 16, 32), (0, 1, 2, 3)]
)
def test_three_bits_are_found_wherever_they_lie(bits):
    """Three bits in any bands are close; four are too many."""
    one = 0x0123456789ABCDEF
    found = find_neighbours(hashes(one, flipped(one, set(bits)))).tolist()
    assert found == [0, int(len(bits) > MAX_DISTANCE)]


def test_hashes_without_information_stay_alone():
    """They are no neighbours, though equal."""
    usable = np.array([False, True, False, True])
    assert find_neighbours(hashes(7, 7, 7, 7), usable=usable).tolist() == [0, 1, 2, 1]


def test_pairs_that_do_not_look_alike_are_dropped():
    """Pictures with equal or close hashes may be of two kinds, two of each."""
    kinds = np.array([0, 1, 0, 1, 0, 1])
    values = hashes(8, 8, 8, 8, 9, 9)
    found = find_neighbours(values, alike=lambda one, other: kinds[one] == kinds[other])
    assert found.tolist() == [0, 1, 0, 1, 0, 1]


def test_things_may_have_several_hashes():
    """0 and 1 meet in the second hash of 0; ``alike`` gets indices of hashes, not of things."""
    asked = list[tuple[int, int]]()

    def alike(first, second):
        asked.extend(zip(first.tolist(), second.tolist(), strict=True))
        return first >= 0

    values = random_hashes(6)
    values[3] = values[1]
    assert find_neighbours(values, count=3, alike=alike).tolist() == [0, 0, 2]
    assert asked == [(1, 3)]


# values, groups
HASHES = [
    pytest.param(random_hashes(ROWS), ROWS, id="random"),
    pytest.param(np.zeros(ROWS, np.uint64), 1, id="equal"),
    pytest.param(np.arange(2**12, dtype=np.uint64), 1, id="dense"),
]


@pytest.mark.parametrize(("values", "groups"), HASHES)
def test_memory_is_bounded(values, groups):
    """Many hashes take less than 64 bytes each, also if they are equal or close."""
    found, peak = peak_of(partial(find_neighbours, values))
    assert len(np.unique(found)) == groups
    assert peak < 64 * len(values) + 4_000_000


def test_close_hashes_are_not_compared_all_with_all():
    """Each of 4,096 hashes that share most bands and a key is compared with at most 17 times 32."""
    values, asked = np.arange(2**12, dtype=np.uint64), 0

    def alike(first, _):
        nonlocal asked
        asked += len(first)
        return np.zeros(len(first), bool)

    assert find_neighbours(values, alike=alike).tolist() == values.tolist()
    assert asked < 17 * 32 * len(values)


def test_keys_find_pairs_in_crowded_buckets():
    """Of 2,000 equal hashes of 1,000 kinds, those of things that share a key are compared."""
    count = 2000
    values = np.zeros(count, np.uint64)
    kinds = np.random.default_rng(0).permutation(np.arange(count) % (count // 2))
    asked = 0

    def alike(first, second):
        nonlocal asked
        asked += len(first)
        return kinds[first] == kinds[second]

    def keys_of(things):
        return [kinds[things].astype(np.uint32) // 4]

    assert len(np.unique(find_neighbours(values, alike=alike, keys_of=lambda _: []))) > count // 2
    asked = 0
    found = find_neighbours(values, alike=alike, keys_of=keys_of)
    assert len(np.unique(found)) == count // 2
    assert asked < (16 * 32 + 16 + 32) * count


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_bits_are_counted(values):
    """As Python counts them."""
    assert count_bits(np.array(values, np.uint64)).tolist() == [v.bit_count() for v in values]
