"""What the launcher reads from the staging folder does not grow with labels or findings."""

import gc
from collections import Counter

import recordgen
from recordgen.core.dataset.counts import ImageStats, Shard, Split
from recordgen.core.facts.columns import facts_of
from recordgen.core.flow import reading
from recordgen.core.flow.found import write_odd_lines
from recordgen.core.runs.staging import Staging
from recordgen.core.shards.task import ShardResult, SplitSum
from recordgen.rejects import Reject

SIZES = ({"png": 2}, (4, 6), (5, 5)), ({"jpeg": 1, "png": 1}, (2, 4), (1, 9))
REFUSED = Reject("a.csv", 3, "3.png", "corrupt", "cut")


def result(split, index, examples, images):
    """Return the result of a shard, of which one row is refused if no example is left."""
    rejects = () if examples else (REFUSED,)
    labels = {f"label {n}": 1 for n in range(examples)}
    shard = Shard(f"Split-{split}/{index}", examples, 10, "0")
    counted = (labels, examples, {"bmp": examples}, rejects, images, "f", index > 1)
    return ShardResult(
        split, shard, *counted, 1, {"boxes_clipped": 2}, facts=facts_of({"line": []})
    )


def test_results_are_added_up_while_they_are_read(tmp_path):
    """A shard without examples says nothing about images; no result stays in memory."""
    staging, stats = Staging(str(tmp_path)), [ImageStats(*each) for each in SIZES]
    made = [result("train", 0, 0, None), result("train", 1, 2, stats[0])]
    made += [result("train", 2, 3, stats[1]), result("eval", 0, 1, None)]
    shards = [each.shard for each in made]
    for index, each in enumerate(made):
        staging.write_result(each, index)
    del made, each
    found = staging.read_results()
    assert not [it for it in gc.get_objects() if isinstance(it, ShardResult)]
    assert found["train"] == SplitSum(
        shards[:3],
        Counter({"label 0": 2, "label 1": 2, "label 2": 1}),
        5,
        Counter({"bmp": 5}),
        [REFUSED],
        ImageStats({"jpeg": 1, "png": 3}, (2, 6), (1, 9)),
        kept=1,
        unlabelled=3,
        changes=Counter({"boxes_clipped": 6}),
    )
    labels = {"label 0": 1}
    assert found["eval"].split() == Split(1, 10, labels, (shards[3],), None, 1, assigned=1)


def test_findings_about_lines_wait_in_files(tmp_path, monkeypatch):
    """Readers and buckets hold few of them at a time; together they are by file and line."""
    held = []

    def written(staging, lines):
        held.append(len(lines))
        return write_odd_lines(staging, lines)

    monkeypatch.setattr(reading, "write_odd_lines", written)
    monkeypatch.setattr(reading, "_FINDINGS_AT_ONCE", 2)
    for name in ("b.csv", "a.csv"):
        lines = "".join(f"TRAIN,{name} text {n},x\nml_use,text,label\n" for n in range(5))
        (tmp_path / name).write_text(f"ml_use,text,label\n{lines}")
    files = [tmp_path / name for name in ("b.csv", "a.csv")]
    found = recordgen.check(files, task="text_classification", progress=None).lint.findings()
    odd = [(it.source, it.line) for it in found if it.code == "REPEATED_HEADER"]
    assert odd == [
        (str(tmp_path / name), 3 + 2 * n) for name in ("a.csv", "b.csv") for n in range(5)
    ]
    assert held == [2, 2, 1] * 2
