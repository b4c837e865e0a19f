"""What the launcher reads from the staging folder does not grow with labels or findings."""

import gc
import threading
from collections import Counter

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import recordgen
from recordgen.core.dataset.counts import ImageStats, Shard
from recordgen.core.facts.columns import facts_of, without_empty
from recordgen.core.flow import steps
from recordgen.core.flow.runner import write_odd_lines
from recordgen.core.rows.columns import packed
from recordgen.core.runs.staging import Staging
from recordgen.core.shards import ShardResult
from recordgen.errors import RunnerError
from recordgen.rejects import Reject


def test_results_are_added_up_while_they_are_read(tmp_path):
    """A shard without examples says nothing about images; no result stays in memory."""
    staging, facts = Staging(str(tmp_path)), [facts_of({"line": []})]
    shards = [Shard(f"Split-train/data_tfrecord-0000{n}-of-00003", n, 10, "0") for n in range(3)]
    seen = [None, ImageStats({"png": 1}, (4, 4), (5, 6)), ImageStats({"jpeg": 2}, (2, 3), (6, 9))]
    for n, images in enumerate(seen):
        counts = ({"label": n}, n, {"bmp": n}, (), images, "0", False, n, {"clipped": n})
        staging.write_result(ShardResult("train", shards[n], *counts, facts=facts), n)
    sums = staging.read_results()["train"]
    held = (it for it in gc.get_objects() if isinstance(it, ShardResult))
    assert not [it for it in held if it.shard in shards]  # other tests may hold theirs
    assert (sums.shards, sums.labels, sums.reencoded) == (shards, {"label": 3}, {"bmp": 3})
    assert (sums.changes, sums.unlabelled) == ({"clipped": 3}, 3)
    assert sums.images == ImageStats({"jpeg": 2, "png": 1}, (2, 4), (5, 9))


def test_a_damaged_result_is_none(tmp_path):
    """Other sizes than those of the shard, or a file that ends between two parts."""
    shard = Shard("Split-train/data_tfrecord-00000-of-00001", 3, 10, "0")
    parts = [facts_of({"line": [1, 2], "content": [1, None]}), facts_of({"content": [3, 4]})]
    refused = Reject("a.csv", 2, "2.png", "corrupt", "cut")
    more = {"lengths": bytes(12), "facts": iter(parts)}
    result = ShardResult("train", shard, {}, 0, {}, (refused,), None, "known", **more)
    staging = Staging(str(tmp_path))
    staging.write_result(result, 0)
    assert staging.find_result("train", 0, "known") == result
    [path] = tmp_path.glob("results/*")
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    sizes = [size.to_bytes(8, "little") for size in (11, 1 << 50, (1 << 64) - 1)]
    damaged = [whole[:start] + size + whole[start + 8 :] for size in sizes]
    for content in (b"", whole[: -len(packed(without_empty(parts[1])))], *damaged):
        path.write_bytes(content)
        assert staging.find_result("train", 0, "known") is None
        with pytest.raises(RunnerError):
            list(staging.shard_facts(shard.file))
    with pytest.raises(ValueError, match="before"):
        staging.write_result(result, 0)  # its facts are made while they are read


def test_findings_about_lines_wait_in_files(tmp_path, monkeypatch):
    """A reader holds few of them at a time; together they are by file and line."""
    held, files = [], [str(tmp_path / name) for name in ("b.csv", "a.csv")]

    def written(staging, lines):
        held.append(len(lines))
        return write_odd_lines(staging, lines)

    monkeypatch.setattr(steps, "write_odd_lines", written)
    header, most = "ml_use,text,label\n", steps.ReadRows.findings_at_once
    for name in files:
        with open(name, "w") as file:
            file.writelines([header, f"TRAIN,{name} text,x\n", *[header] * (most + 1)])
    found = recordgen.check(files, task="text_classification", progress=None).lint.findings()
    odd = [(it.source, it.line) for it in found if it.code == "JOINED_FILES"]
    assert odd == [(name, 3 + n) for name in reversed(files) for n in range(most + 1)]
    assert held == [most, 1] * 2


REQUESTS = ("info", "ls", "open", "cat_file", "pipe_file", "mv", "rm")


def test_a_run_asks_only_for_files_that_are_there(make_images, make_csv, monkeypatch):
    """A run of 40 images and one shard takes at most 60 requests to the storage of its output.

    Three of them find nothing: no dataset, before and in the run, and no other run.
    """
    asked, thread = Counter[str](), threading.local()

    def counted(name, request):
        def call(*args, **more):
            is_outer, thread.is_busy = not getattr(thread, "is_busy", False), True
            asked[name] += is_outer
            try:
                return request(*args, **more)
            except FileNotFoundError:
                asked["missing"] += is_outer
                raise
            finally:
                thread.is_busy = not is_outer

        return call

    for name in REQUESTS:
        monkeypatch.setattr(MemoryFileSystem, name, counted(name, getattr(MemoryFileSystem, name)))
    source = make_csv(f"TRAIN,{path},cat" for path in make_images(40))
    done = recordgen.convert(source, "memory://requests/out", lint="-tiny", progress=None)
    missing = asked.pop("missing")
    assert done.dataset.examples == 40
    assert asked.total() <= 60
    assert missing <= 3
