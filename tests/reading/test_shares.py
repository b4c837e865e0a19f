import pytest

from recordgen.reading.plan import Piece, consecutive_share, even_share

# rule, records of files; (file, first record, count) of each worker
SHARES = [
    (consecutive_share, (5, 5, 5), 2, [[(0, 0, 5), (1, 0, 2)], [(1, 2, 3), (2, 0, 5)]]),
    (consecutive_share, (4, 4), 2, [[(0, 0, 4)], [(1, 0, 4)]]),
    (consecutive_share, (7,), 3, [[(0, 0, 2)], [(0, 2, 2)], [(0, 4, 3)]]),
    (consecutive_share, (1,), 2, [[], [(0, 0, 1)]]),
    (even_share, (5, 3), 2, [[(0, 0, 3), (1, 2, 1)], [(0, 3, 2), (1, 0, 2)]]),
    (even_share, (1, 1, 1), 2, [[(0, 0, 1), (2, 0, 1)], [(1, 0, 1)]]),
]


@pytest.mark.parametrize(("share", "counts", "workers", "expected"), SHARES)
def test_a_share_is_whole_files_and_parts_or_a_part_of_each_file(share, counts, workers, expected):
    found = [share(counts, index, workers) for index in range(workers)]
    assert found == [[Piece(*piece) for piece in pieces] for pieces in expected]
