"""The benchmarks run and print the expected figures; the figures are not judged here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import bombs, lint_precision, mutants, results
from benchmarks.convert import CONTENDERS
from benchmarks.memory import PeakMemory, pss_bytes, tree
from recordgen import convert
from tests.conftest import COMPONENTS, encoded, noise
from tests.preloaded import WITH_TENSORFLOW

ROOT = Path(__file__).parents[2]


def benchmark(name, *args):
    return subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *map(str, args)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{COMPONENTS}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )


def test_memory_of_grandchildren_counts_until_they_end():
    hold = "data = b'x' * 80_000_000; print(flush=True); input()"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with PeakMemory(process.pid) as memory:
            process.stdout.readline()
            pids = list(tree(process.pid))
        process.stdin.write(b"\n")
    assert len(pids) == 2
    assert 80 < memory.peak_mb < 160
    assert pss_bytes(process.pid) == 0


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Return a folder with four images."""
    folder = tmp_path_factory.mktemp("photos")
    for number in range(4):
        (folder / f"{number}.jpg").write_bytes(encoded(noise(seed=number), "JPEG"))
    return folder


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_converts(name, photos, tmp_path):
    paths = sorted(map(str, photos.iterdir()))
    assert CONTENDERS[name](paths, str(tmp_path / "out")) > 0
    assert any(tmp_path.iterdir()) == (name != "limit_short_side")


def test_convert_measures_contenders(photos):
    names = ["limit", "recordgen_none"]
    done = benchmark(
        "convert", "--images", photos, "--rows", 4, "--rounds", 1, "--json", "--only", *names
    )
    found = json.loads(done.stdout)
    assert list(found) == ["examples_per_s", "peak_mb", "rounds"]
    for figures in found.values():
        assert list(figures) == names
    assert all(rate > 0 for rate in found["examples_per_s"].values())
    assert all(size > 10 for size in found["peak_mb"].values())


def test_read_measures_contenders(photos, tmp_path):
    other = tmp_path / "python"
    installed = '[ "$2" != --installed ] || { echo \'["source_torch"]\'; exit; }'
    other.write_text(f"#!/bin/sh\n{installed}\nwhile read -r _; do echo '[1.0, 2.0, 3.0]'; done\n")
    other.chmod(0o755)
    names = ["limit", "limit_resized", "recordgen", "naive", "source_torch"]
    size = ["--image-size", 8, 8, "--batch-size", 2]
    given = ["--data", photos, "--rounds", 2, "--others", other, *size, "--json", "--only", *names]
    done = WITH_TENSORFLOW.run("-m", "benchmarks.read", *map(str, given))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rounds"].pop("source_torch") == [1.0, 1.0]
    figures = (found[name]["source_torch"] for name in ("cpu_ms_per_image", "waits_per_image"))
    assert tuple(figures) == (2.0, 3.0)
    assert [len(rates) for rates in found["rounds"].values()] == [2] * 4
    assert all(rate > 0 for rate in found["examples_per_s"].values())


def test_learning_compares_contenders_on_the_same_images(tmp_path):
    for number in range(44):
        path = tmp_path / "data" / "ab"[number % 2] / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(noise(40, 40, number), "JPEG"))
    few = ["--train", 36, "--test", 8, "--epochs", 1, "--seeds", 5, "--json"]
    given = ("--only", "--data", tmp_path / "data", *few)
    done = WITH_TENSORFLOW.run("-m", "benchmarks.learning", *map(str, given))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [score["contender"] for score in found] == ["recordgen", "Keras", "Keras, changed"]
    assert all(score["size"] == [40, 40] and 0 <= score["accuracy"] <= 1 for score in found)


@pytest.mark.parametrize("name", ["diff", "rows"])
def test_growth_is_measured(name):
    done = benchmark(name, "--rows", 200, 100, "--json")
    found = json.loads(done.stdout)
    assert [item["rows"] for item in found] == [100, 200]
    assert all(item["peak_mb"] > 10 for item in found)
    assert done.stderr == ""


def test_lint_precision_plants_every_fault(photos, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["lint_precision", "--images", str(photos)])
    lint_precision.main()
    copies, looks, cost = capsys.readouterr().out.split("\n\n")
    assert [line[:17].strip() for line in copies.splitlines()[1:]] == list(lint_precision.COPIES)
    assert copies.splitlines()[1].split() == ["exact", "copy", "100%"]
    assert len(looks.splitlines()) == 1 + len(lint_precision.LOOKS)
    assert looks.splitlines()[-2].endswith("100%")
    assert cost.count("of the decode at 1/8") == 2


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's warnings about metadata
def test_no_mutant_is_judged_wrongly():
    """Accepted files decode in TensorFlow, and sound files are accepted, for every format.

    Most changes keep checksums and lengths right: chunks, segments, blocks, tags and fields.
    """
    wrong, kinds, seen = [], 0, 0
    for name, change, counts in mutants.judge(1, seed=1):
        kinds, seen = kinds + 1, seen + counts.accepted + counts.refused
        if counts.false_accepts or counts.false_rejects:
            wrong.append((name, change, counts))
    assert (kinds >= 1000, seen >= 1000, wrong) == (True, True, [])


def test_bombs_are_measured(capsys):
    name = "tiff of 3 million strips"
    bombs.main(["--only", name])
    _, line = capsys.readouterr().out.splitlines()
    kilobytes, seconds, peak_mb, outcome = line.removeprefix(name).split(maxsplit=3)
    assert (kilobytes, float(seconds) < 5, float(peak_mb) < 200) == ("24000", True, True)
    assert outcome.startswith("too_many_parts: ")


def test_every_contender_answers():
    contest = results.CONTESTS["wine"]
    scores = list(results.run("wine", seed=0, count=44, epochs=1))
    assert [score.contender for score in scores] == ["recordgen", *contest.rivals]
    assert all(0 <= score.score <= 1 and score.cpu_seconds > 0 for score in scores)


def test_rivals_find_boxes_in_the_pictures_that_are_converted(tmp_path):
    contest = results.CONTESTS["boxes"]
    examples = contest.make(0, 44)
    dataset = convert(examples.write(tmp_path), tmp_path / "out").dataset
    assert (dataset.task, dataset.examples) == ("object_detection", 44)
    assert dataset.labels == tuple(sorted(examples.labels))
    for learn in contest.rivals.values():
        assert 0 <= learn(examples, contest.training._replace(epochs=1)).score <= 1
