"""Checks as steps of the graph find what the same checks find in all facts at once."""

import json
import pickle
import tempfile
from functools import partialmethod
from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordgen.checks.check import ALIKE, EACH, KEPT, NONE, ExampleFacts, FoundRows, checks_of
from recordgen.checks.copies import alike_groups
from recordgen.conversion.api import conversion_of
from recordgen.conversion.examination import BATCH, UNITE, Examination, Stage
from recordgen.conversion.examining import Size, UniteGroups, examine
from recordgen.core.dataset.counts import Shard
from recordgen.core.dataset.manifest import shard_file
from recordgen.core.facts.columns import facts_of
from recordgen.core.flow.runner import LocalRunner, sort_key
from recordgen.core.runs.staging import Staging
from recordgen.core.shards import ShardResult
from recordgen.measures.pictures import Looks, measured
from recordgen.options import make_options
from tests.conftest import peak_of

SPLITS = ("eval", "test", "train")
PAYLOADS = 15


def random_payloads(random):
    """Return hashes, signatures and contrasts of payloads, of which several are nearly the same."""
    kind = random.integers(0, 3, PAYLOADS)
    flipped = np.uint64(1) << random.integers(0, 64, PAYLOADS, np.uint64)
    hashes = random.integers(0, 2**64, 3, np.uint64)[kind]
    hashes ^= flipped * random.integers(0, 2, PAYLOADS, np.uint64)
    noise = random.integers(0, 2, (PAYLOADS, 64)) * random.integers(0, 40, (PAYLOADS, 1))
    looks = random.integers(0, 256, (3, 64))[kind]
    signatures = np.clip(looks + noise, 0, 255).astype(np.uint8)
    return hashes, signatures, random.integers(0, 20, PAYLOADS)


def random_facts(task, lines, random, payloads):
    """Return facts of examples that are often the same, or nearly."""
    count = len(lines)
    content = random.integers(0, PAYLOADS, count)
    hashes, signatures, contrast = (each[content] for each in payloads)
    boxes = [
        json.dumps([[str(random.integers(0, 2)), 0.1, 0.1, 0.1 + 0.3 * k, 0.5]] * (k + 1))
        for k in random.integers(0, 3, count).tolist()
    ]
    labels = [f"label {each}" for each in random.integers(0, 2, count)]
    annotations = {"object_detection": boxes, "image_classification": labels}
    found = {
        "source": [f"{each}.csv" for each in random.integers(0, 2, count)],
        "line": lines,
        "uri": [f"{each}.png" for each in random.integers(0, 9, count)],
        "annotation": annotations.get(task, [json.dumps({"said": [each]}) for each in labels]),
        "content": content,
        "signature": [each.tobytes() for each in signatures],
    }
    if task == "text_classification":
        found["characters"] = random.integers(1, 9, count) ** 4
        found["garbled"] = [None if each else "Ã©" for each in random.integers(0, 9, count)]
    else:
        found |= {
            "format": ["png" if each else "jpeg" for each in random.integers(0, 9, count)],
            "height": random.integers(1, 3, count) * 10,
            "width": random.integers(1, 3, count) * 30,
            "frames": random.integers(1, 3, count),
            "perceptual_hash": hashes,
            "contrast": contrast,
            "brightness": random.integers(0, 256, count),
            **{name: random.integers(0, 256, count) for name in ("darkest", "lightest")},
            "sharpness": random.random(count),
        }
    return facts_of(found)


def stage(staging, task, sizes, random):
    """Write facts of shards; return the names of the shards."""
    files, payloads, lines = [], random_payloads(random), random.permutation(sum(sizes))
    for number, size in enumerate(sizes):
        split = SPLITS[number % len(SPLITS)]
        files.append(shard_file(split, number, len(sizes), "none"))
        mine, lines = lines[:size], lines[size:]
        write_facts(staging, split, number, random_facts(task, mine, random, payloads))
    return files


def write_facts(staging, split, number, facts):
    """Write the result of a shard that has facts, and nothing else."""
    shard = Shard(shard_file(split, number, number + 1, "none"), len(facts), 0, "0")
    lengths = bytes(4 * len(facts))
    result = ShardResult(split, shard, {}, 0, {}, (), None, "", lengths=lengths, facts=[facts])
    staging.write_result(result, number)


def found_at_once(shared, facts):
    """Return all findings, given all facts."""
    examined, lines, texts = shared.examined(facts), {}, []
    for check in checks_of(shared.conversion.task, shared.selection):
        items = [] if check.scope == NONE else list(check.findings(examined))
        texts += [item for item in items if isinstance(item, str)]
        rows = [
            (facts.address(row), facts.finding(check.code, check.level, row, *said).to_line())
            for part in items
            if isinstance(part, FoundRows)
            for row, *said in (
                (int(row), part.message(at), None if part.partners is None else part.partners[at])
                for at, row in enumerate(part.rows)
            )
        ]
        lines[check.code] = [line for _, line in sorted(rows)]
    return lines, texts


@pytest.mark.parametrize(
    "task", ["image_classification", "object_detection", "text_classification"]
)
@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=5),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 2**32),
)
def test_the_steps_find_what_is_found_at_once(task, sizes, buckets, batches, seed):
    """The distributed steps find what one pass over all facts finds."""
    options = make_options({"task": task, "lint": ("few_examples=1", "tiny=15")})
    with tempfile.TemporaryDirectory() as folder:
        staging = Staging(folder)
        files = stage(staging, task, sizes, np.random.default_rng(seed))
        conversion = conversion_of(options)
        shared = Examination(conversion, options.selection, staging, "", buckets, batches)
        runner = LocalRunner()
        examine(runner, runner.start("ListShards", files), shared)
        runner.run(staging)
        facts = ExampleFacts(chain.from_iterable(map(staging.shard_facts, sorted(files))))
        facts.groups = alike_groups(facts, None)
        lines, texts = found_at_once(shared, facts)
        found = staging.read_found()
        files = {code: staging.read_lines(name) for code, name in found.files.items()}
        written = {code: [line.decode() for line in lines] for code, lines in files.items()}
    assert written == {code: expected for code, expected in lines.items() if expected}
    assert sorted(chain.from_iterable(found.about_all.values())) == sorted(texts)
    assert not found.remarks


NAMES = st.text(st.sampled_from('ab/\0\t\n\r" é\uffff\U0001f600'))
NUMBERS = st.integers(0, 2**31 - 1)


@given(st.lists(st.tuples(NAMES, NUMBERS, NAMES, NUMBERS, NUMBERS)))
def test_findings_are_sorted_by_place_whatever_the_names(places):
    """Sort keys of places keep their order and are plain hexadecimal digits."""
    keys = [sort_key(each) for each in sorted(places)]
    assert keys == sorted(keys)
    assert set("".join(keys)) <= set("0123456789abcdef ")


def test_every_scope_has_a_check():
    """Else the test above would show nothing about one of them."""
    options = make_options({"task": "text_classification"})
    scopes = {check.scope for check in checks_of(conversion_of(options).task, options.selection)}
    assert {EACH, NONE} <= scopes
    assert KEPT not in scopes


def pictures_of(pixels, contents):
    """Return the facts of pictures: uint8 [n, 32, 32]."""
    count, level = len(pixels), np.full(len(pixels), 40.0)
    seen = measured(Looks(pixels.astype(np.uint8), level))._asdict()
    seen["signature"] = [each.tobytes() for each in seen["signature"]]
    values = {"source": ["a.csv"] * count, "line": np.arange(count), "uri": ["a"] * count}
    return facts_of({**values, "annotation": ["cat"] * count, "content": contents, **seen})


def found_in(folder, shards, buckets=1, batches=1):
    """Return the lines of the findings of each code, and the remarks, about a shard by split."""
    options = make_options({"task": "image_classification", "lint": "ALL"})
    staging = Staging(str(folder))
    for split, facts in shards.items():
        write_facts(staging, split, 0, facts)
    shared = Examination(conversion_of(options), options.selection, staging, "", buckets, batches)
    runner = LocalRunner()
    files = [shard_file(split, 0, 1, "none") for split in shards]
    examine(runner, runner.start("Shards", files), shared)
    runner.run(staging)
    about, found = staging.read_found(), {}
    for code in ("LEAK", "DUPLICATE", "NEAR_LEAK", "NEAR_DUPLICATE"):
        lines = staging.read_lines(about.files[code]) if code in about.files else ()
        found[code] = [json.loads(line)["line"] for line in lines]
    return found, list(about.remarks)


def noise(count, spread, random):
    return np.kron(random.integers(-spread, spread + 1, (count, 8, 8)), np.ones((4, 4), int))


def test_buckets_lose_no_pair_of_a_crowd(tmp_path):
    """Pictures that all look alike are joined by keys of their own, in each bucket."""
    count, pairs, random = 4000, 200, np.random.default_rng(0)
    pixels = random.integers(24, 232, (32, 32)) + noise(count, 12, random)
    pixels[:pairs] = pixels[-pairs:] + random.integers(-1, 2, (pairs, 32, 32))
    shards = {"train": pictures_of(pixels, np.arange(count))}
    found = {}
    for buckets in (1, 4):
        lines, _ = found_in(tmp_path / str(buckets), shards, buckets)
        found[buckets] = set(lines["NEAR_DUPLICATE"])
    assert found[4] == found[1] >= set(range(count - pairs, count))


def test_a_large_bucket_is_divided_and_loses_no_pair(tmp_path, monkeypatch):
    """It is read several times, each time for some of its keys."""
    count, pairs, random = 200, 50, np.random.default_rng(0)
    pixels = 128 + noise(count, 100, random)
    pixels[:pairs] = pixels[-pairs:] + random.integers(-1, 2, (pairs, 32, 32))
    shards = {"train": pictures_of(pixels, np.arange(count))}
    at_once = found_in(tmp_path / "at once", shards)
    monkeypatch.setattr("recordgen.checks.copies.MOST_COMPARED", 60)
    assert found_in(tmp_path / "divided", shards) == at_once
    assert len(at_once[0]["NEAR_DUPLICATE"]) > pairs / 2


CROWD = 100


def crowd(contents):
    """Return three shards of pictures that look the same."""
    pixels = np.random.default_rng(0).integers(24, 232, (32, 32))[None].repeat(CROWD, axis=0)
    return {
        split: pictures_of(pixels, contents[at * CROWD :][:CROWD])
        for at, split in enumerate(("train", "eval", "test"))
    }


def test_portions_of_a_crowd_share_their_groups(tmp_path, monkeypatch):
    """A portion takes over the first pictures of the one before."""
    monkeypatch.setattr("recordgen.checks.copies.MOST_COMPARED", CROWD)
    monkeypatch.setattr("recordgen.conversion.examining._CROWD", CROWD)
    found, remarks = found_in(tmp_path, crowd(np.arange(3 * CROWD)), buckets=2, batches=9)
    assert len(found["NEAR_LEAK"]) == 2 * CROWD
    assert len(remarks) == 1


# contents, leak, duplicate
LARGE_GROUPS = [
    (np.arange(3 * CROWD), "NEAR_LEAK", "NEAR_DUPLICATE"),
    (np.zeros(3 * CROWD, int), "LEAK", "DUPLICATE"),
]


@pytest.mark.parametrize(("contents", "leak", "duplicate"), LARGE_GROUPS)
def test_a_large_group_is_examined_in_parts(tmp_path, monkeypatch, contents, leak, duplicate):
    """Each part has some pictures of each split, so only its own first ones are no findings."""
    monkeypatch.setattr("recordgen.conversion.examination.MOST_TOGETHER", 20)
    monkeypatch.setattr("recordgen.checks.copies.CopyCheck.most_together", 20)
    monkeypatch.setattr("recordgen.conversion.examination._FILE_FINDINGS", 7)
    found, remarks = found_in(tmp_path, crowd(contents), buckets=2, batches=9)
    parts = 3 * CROWD // 20
    assert len(found[leak]) == 2 * CROWD
    assert len(found[duplicate]) == 3 * (CROWD - parts)
    assert found[duplicate] == sorted(found[duplicate])
    assert sum(remark.startswith(leak) for remark in remarks) == 1


def test_what_travels_between_steps_does_not_grow_with_the_examples(tmp_path, monkeypatch):
    """All pictures are copies: rows of those that others are like wait in the staging folder."""
    sizes = []

    def measured(stage, element, process):
        for message in process(stage, element):
            sizes.append(len(pickle.dumps(message)))
            yield message

    for kind in Stage.__subclasses__():
        monkeypatch.setattr(kind, "process", partialmethod(measured, process=kind.process))
    # Beyond it, a message has a file's name.
    monkeypatch.setattr("recordgen.core.runs.staging._IN_NAME", 0)
    found_in(tmp_path, crowd(np.zeros(3 * CROWD, int)), buckets=2, batches=3)
    assert 0 < max(sizes) < 4 * CROWD


def test_groups_are_united_in_a_file(tmp_path, monkeypatch):
    """Memory does not hold all examples, of which the last is in a group with the first."""
    monkeypatch.setattr("recordgen.conversion.examining._AT_ONCE", 1 << 12)
    options, batches, size = make_options({"task": "image_classification"}), 64, 1 << 14
    shared = Examination(conversion_of(options), options.selection, Staging(str(tmp_path)), "", 1)
    [name] = (group.name for group in shared.groups() if group.scope == ALIKE)
    step = UniteGroups(shared)
    step.begin(lambda amounts: None)
    found = {"batch": [batches - 1, 0], "row": [size - 1, 0], "group": [0, 0]}
    [(_, rows)] = step.left(0, [(("", 0), pa.table(found, pa.schema(dict.fromkeys(found, "i4"))))])
    sizes = [Size(batch, size) for batch in range(batches)]
    united, peak = peak_of(lambda: dict(step.process(((UNITE + name, 0), [rows, *sizes]))))
    assert peak < 2 * batches * size
    alike = {batch: next(step.read([united[BATCH, batch].rows])) for batch in (0, batches - 1)}
    assert [each["row"].to_pylist() for each in alike.values()] == [[0], [size - 1]]
    assert len({each["key"][0] for each in alike.values()}) == 1
