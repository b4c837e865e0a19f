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
    shares = [
        [
            (piece.file, piece.start + n)
            for piece in share(counts, index, workers)
            for n in range(piece.count)
        ]
        for index in range(workers)
    ]
    everything = [(file, record) for file, count in enumerate(counts) for record in range(count)]
    assert sorted(record for records in shares for record in records) == everything
    sizes = [len(records) for records in shares]
    assert max(sizes) - min(sizes) <= 1


@given(counts=COUNTS, workers=WORKERS)
def test_a_file_is_opened_twice_only_if_two_shares_meet_in_it(counts, workers):
    pieces = [
        piece for index in range(workers) for piece in consecutive_share(counts, index, workers)
    ]
    assert len(pieces) <= len(counts) + workers - 1


@given(counts=COUNTS, workers=WORKERS)
def test_every_worker_has_a_part_of_every_file(counts, workers):
    for file in range(len(counts)):
        sizes = []
        for index in range(workers):
            mine = [piece for piece in even_share(counts, index, workers) if piece.file == file]
            sizes.append(sum(piece.count for piece in mine))
        assert max(sizes) - min(sizes) <= 1
