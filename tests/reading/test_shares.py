import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordgen.reading.plan import Piece, consecutive_share, even_share

COUNTS = st.lists(st.integers(1, 50), min_size=1, max_size=9)
WORKERS = st.integers(1, 12)


@pytest.mark.parametrize(
    ("share", "counts", "workers", "expected"),
    [
        # rule, records of files; (file, first record, count) of each worker
        (consecutive_share, (5, 5, 5), 2, [[(0, 0, 5), (1, 0, 2)], [(1, 2, 3), (2, 0, 5)]]),
        (consecutive_share, (4, 4), 2, [[(0, 0, 4)], [(1, 0, 4)]]),
        (consecutive_share, (7,), 3, [[(0, 0, 2)], [(0, 2, 2)], [(0, 4, 3)]]),
        (consecutive_share, (1,), 2, [[], [(0, 0, 1)]]),
        (even_share, (5, 3), 2, [[(0, 0, 3), (1, 2, 1)], [(0, 3, 2), (1, 0, 2)]]),
        (even_share, (1, 1, 1), 2, [[(0, 0, 1), (2, 0, 1)], [(1, 0, 1)]]),
    ],
)
def test_a_share_is_whole_files_and_parts_or_a_part_of_each_file(share, counts, workers, expected):
    found = [share(counts, index, workers) for index in range(workers)]
    assert found == [[Piece(*piece) for piece in pieces] for pieces in expected]


@pytest.mark.parametrize("share", [consecutive_share, even_share])
@given(counts=COUNTS, workers=WORKERS)
def test_shares_are_disjoint_complete_and_equal(share, counts, workers):
    """Two shares meet in a file at most once, or else each worker has a part of every file."""
    shares = [share(counts, index, workers) for index in range(workers)]
    records = [(p.file, p.start + n) for pieces in shares for p in pieces for n in range(p.count)]
    assert sorted(records) == [(file, n) for file, count in enumerate(counts) for n in range(count)]
    sizes = [
        [sum(piece.count for piece in pieces if piece.file == file) for file in range(len(counts))]
        for pieces in shares
    ]
    assert max(map(sum, sizes)) - min(map(sum, sizes)) <= 1
    if share is consecutive_share:
        assert sum(map(len, shares)) <= len(counts) + workers - 1
    else:
        assert all(max(parts) - min(parts) <= 1 for parts in zip(*sizes, strict=True))
