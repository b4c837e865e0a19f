"""map_in_order: results in the items' order, a bounded number of items in flight."""

from threading import Barrier, Event

import pytest

from recordgen.core.ordered import default_threads, map_in_order


def taken(items, log):
    """Yield items, and record each item that is taken."""
    for item in items:
        log.append(item)
        yield item


def test_results_come_in_order_whoever_is_first():
    """The first item finishes last, but its result comes first."""
    second_ended = Event()

    def work(item):
        if item == 0:
            assert second_ended.wait(60)
        if item == 1:
            second_ended.set()
        return item * 10

    assert list(map_in_order(work, range(20), threads=2)) == [item * 10 for item in range(20)]


def test_items_are_worked_on_side_by_side():
    """Three threads meet at a barrier, which none of them could pass by itself."""
    barrier = Barrier(3)
    waited = map_in_order(lambda _: barrier.wait(60), range(9), threads=3)
    assert sorted(waited) == sorted([0, 1, 2] * 3)


# ahead, bytes of each item, max_bytes; items taken before the first result
BOUNDS = [
    (1, None, 0, 1),
    (4, None, 0, 4),
    (None, None, 0, 6),  # three for each of two threads
    (9, 10, 30, 3),
    (9, 10, 21, 3),  # started while less than 21 bytes are held
    (9, 100, 30, 1),  # one item is larger than the limit
    (2, 10, 100, 2),
]


@pytest.mark.parametrize(("ahead", "size", "max_bytes", "expected"), BOUNDS)
def test_few_items_are_under_way(ahead, size, max_bytes, expected):
    """An item is taken only if there is room; the second one tells whether there are more."""
    log = []
    bounds = {"ahead": ahead, "max_bytes": max_bytes}
    bounds["bytes_of"] = None if size is None else lambda _: size
    results = map_in_order(lambda item: item, taken(list(range(12)), log), threads=2, **bounds)
    for number, result in enumerate(results):
        assert result == number
        assert len(log) == min(12, max(2, number + expected))
    assert number == 11


def test_an_error_comes_at_its_place():
    """Earlier results come before the error; later items are not started."""
    log = []

    def work(item):
        if item == 2:
            raise ValueError("the third")
        return item

    results = map_in_order(work, taken(list(range(9)), log), threads=1, ahead=2)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="the third"):
        next(results)
    assert log == [0, 1, 2, 3]
    assert list(results) == []


@pytest.mark.parametrize("fails", [False, True], ids=["left", "failed"])
def test_who_leaves_lets_the_others_end(fails):
    """on_leave is called before the wait for items in flight, so that they can end."""
    started, leave = Event(), Event()
    ended = []

    def work(item):
        if item == 0:
            assert started.wait(60)
            if fails:
                raise ValueError("the first")
        if item == 1:
            started.set()
            assert leave.wait(60)
            ended.append(item)
        return item

    results = map_in_order(work, range(9), threads=2, ahead=9, on_leave=leave.set)
    if fails:
        with pytest.raises(ValueError, match="the first"):
            next(results)
    else:
        assert next(results) == 0
        results.close()
    assert ended == [1]
    assert leave.is_set()


def test_nothing_to_do():
    """Without items there are no results, but on_leave is called."""
    left = Event()
    assert list(map_in_order(str, [], threads=2, on_leave=left.set)) == []
    assert left.is_set()


# files, most
CONTAINERS = [
    ({"cpu.max": "200000 100000\n"}, 2),
    ({"cpu.max": "250000 100000\n"}, 3),
    ({"cpu.max": "10000 100000\n"}, 2),
    ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
    ({"cpu.max": "max 100000\n"}, None),
    ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("files", "most"), CONTAINERS)
def test_a_container_has_the_threads_of_its_processor_time(tmp_path, monkeypatch, files, most):
    """The limits of either version of cgroups decide the number of threads."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)))
    assert default_threads(str(tmp_path)) == (most or 64)
