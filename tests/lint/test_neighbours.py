"""Near-duplicates among hashes: what all-pairs would group, without comparing all pairs."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordgen.lint.neighbours import MAX_DISTANCE, count_bits, find_neighbours

ROWS = 1 << 17


def hashes(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def flipped(value: int, bits: set[int]) -> int:
    for bit in bits:
        value ^= 1 << bit
    return value


def random_hashes(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2**64, count, dtype=np.uint64)


def groups_of_all_pairs(values: np.ndarray, max_distance: int) -> np.ndarray:
    close = count_bits(values[:, None] ^ values[None]) <= max_distance
    groups = np.arange(len(values))
    while True:
        lower = np.where(close, groups[None], len(values)).min(axis=1, initial=len(values))
        if np.array_equal(lower, groups):
            return groups
        groups = lower


@st.composite
def families(draw: st.DrawFn) -> np.ndarray:
    """Draw hashes that are a few bits away from a few others."""
    parents = draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4))
    bits = st.sets(st.integers(0, 63), max_size=4)
    children = st.builds(flipped, st.sampled_from(parents), bits)
    return np.array(draw(st.lists(children, max_size=24)), np.uint64)


@given(families(), st.integers(0, MAX_DISTANCE))
def test_groups_are_those_of_all_pairs(values: np.ndarray, max_distance: int) -> None:
    """Each member of a group is joined to it by one pair, whose distance is true."""
    found = find_neighbours(values, max_distance=max_distance)
    expected = groups_of_all_pairs(values, max_distance)
    assert found.groups.tolist() == expected.tolist()
    assert len(found.first) == len(values) - len(set(expected.tolist()))
    assert (found.first < found.second).all()
    assert sorted(zip(found.first, found.second, strict=True)) == list(
        zip(found.first, found.second, strict=True)
    )
    assert found.distance.tolist() == [
        (int(values[one]) ^ int(values[other])).bit_count()
        for one, other in zip(found.first, found.second, strict=True)
    ]
    assert (found.distance <= max_distance).all()


@pytest.mark.parametrize("bits", [(0, 1, 2), (15, 16, 63), (3, 20, 40), (17, 33, 49), (0, 16, 32)])
def test_three_bits_are_found_wherever_they_lie(bits: tuple[int, ...]) -> None:
    """Also if each is in another band."""
    one = 0x0123456789ABCDEF
    found = find_neighbours(hashes(one, flipped(one, set(bits))))
    assert found.groups.tolist() == [0, 0]
    assert found.distance.tolist() == [3]


def test_four_bits_are_too_many() -> None:
    assert find_neighbours(hashes(0, 0b1111)).groups.tolist() == [0, 1]


def test_no_hash_has_no_neighbours() -> None:
    found = find_neighbours(hashes())
    assert [len(each) for each in found] == [0, 0, 0, 0]


def test_hashes_without_information_stay_alone() -> None:
    usable = np.array([False, True, False, True])
    found = find_neighbours(hashes(7, 7, 7, 7), usable=usable)
    assert found.groups.tolist() == [0, 1, 2, 1]


def test_pairs_that_do_not_look_alike_are_dropped() -> None:
    """Pictures may share a hash, or have close ones, and still be two of each of two kinds."""
    kinds = np.array([0, 1, 0, 1, 0, 1])
    found = find_neighbours(
        hashes(8, 8, 8, 8, 9, 9), alike=lambda one, other: kinds[one] == kinds[other]
    )
    assert found.groups.tolist() == [0, 1, 0, 1, 0, 1]
    assert list(zip(found.first, found.second, strict=True)) == [(0, 2), (0, 4), (1, 3), (1, 5)]


def test_things_may_have_several_hashes() -> None:
    """0 and 1 meet in the second hash of 0; ``alike`` is asked about hashes, not things."""
    asked = list[tuple[int, int]]()

    def alike(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        asked.extend(zip(first.tolist(), second.tolist(), strict=True))
        return np.ones(len(first), bool)

    values = random_hashes(6)
    values[3] = values[1]
    found = find_neighbours(values, count=3, alike=alike)
    assert found.groups.tolist() == [0, 0, 2]
    assert asked == [(1, 3)]


def test_a_greater_distance_is_refused() -> None:
    with pytest.raises(ValueError, match=r"max_distance must be 0 to 3 \(got 4\)"):
        find_neighbours(hashes(1), max_distance=4)


@pytest.mark.parametrize(
    ("values", "pairs"),
    [
        pytest.param(random_hashes(ROWS), 0, id="random"),
        pytest.param(np.zeros(ROWS, np.uint64), ROWS - 1, id="equal"),
        pytest.param(np.arange(2**12, dtype=np.uint64), 2**12 - 1, id="dense"),
    ],
)
def test_memory_is_bounded(values: np.ndarray, pairs: int) -> None:
    """Neither many hashes nor equal or close ones take 100 bytes each."""
    tracemalloc.start()
    found = find_neighbours(values)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.first) == pairs
    assert peak < 100 * len(values) + 5_000_000


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_bits_are_counted(values: list[int]) -> None:
    assert count_bits(np.array(values, np.uint64)).tolist() == [v.bit_count() for v in values]
