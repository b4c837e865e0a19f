"""The benchmarks run and print the expected figures; the figures are not judged here."""

import json
import sys

import pytest

from benchmarks import lint, mutants, results, rows
from benchmarks.convert import CONTENDERS
from tests.conftest import ROOT, run_python, write_noise
from tests.preloaded import WITH_TENSORFLOW


def benchmark(name, *args):
    done = run_python("-m", f"benchmarks.{name}", *map(str, args), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Return a folder with four images."""
    folder = tmp_path_factory.mktemp("photos")
    write_noise(folder, (f"{number}.jpg" for number in range(4)))
    return folder


@pytest.mark.parametrize("name", ["limit", "limit_short_side", "recordgen_near", "naive", "tfx"])
def test_contenders_convert(name, photos, tmp_path):
    """Each way of converting runs, and writes unless it only measures a limit."""
    assert CONTENDERS[name](sorted(map(str, photos.iterdir())), str(tmp_path / "out")) > 0
    assert any(tmp_path.iterdir()) == (name != "limit_short_side")


def test_convert_measures_contenders(photos):
    """The contenders that ``--only`` names have rates and peaks."""
    names = ["limit", "recordgen_none"]
    given = ("--images", photos, "--rows", 4, "--rounds", 1, "--json", "--only", *names)
    done = benchmark("convert", *given)
    found = json.loads(done.stdout)
    assert list(found) == ["examples_per_s", "peak_mb", "rounds"]
    for figures in found.values():
        assert list(figures) == names
    assert all(rate > 0 for rate in found["examples_per_s"].values())
    assert all(size > 10 for size in found["peak_mb"].values())


def test_read_measures_contenders(photos, tmp_path):
    """Pipelines of this process and of another interpreter have figures of each round."""
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


def test_growth_is_measured():
    """Numbers of rows are measured in order, with memory, and nothing is written to stderr."""
    done = benchmark("rows", "--rows", 200, 100, "--json")
    found = json.loads(done.stdout)
    assert [item["rows"] for item in found] == [100] * len(rows.CASES) + [200] * len(rows.CASES)
    assert all(item["peak_mb"] > 10 for item in found)
    assert done.stderr == ""


def test_lint_plants_every_fault(photos, monkeypatch, capsys):
    """Each fault of pictures and texts has a line; exact copies are always found."""
    few = ["--images", str(photos), "--count-texts", "9"]
    texts = photos.parent / "texts.txt"
    texts.write_text("".join(f"the text number {number} of nine\n" for number in range(9)))
    monkeypatch.setattr(sys, "argv", ["lint", *few, "--texts", str(texts)])
    lint.main()
    copies, looks, cost, *_ = capsys.readouterr().out.split("\n\n")
    assert [line[:17].strip() for line in copies.splitlines()[1:]] == list(lint.COPIES)
    assert copies.splitlines()[1].split() == ["exact", "copy", "100%"]
    assert len(looks.splitlines()) == 1 + len(lint.LOOKS)
    assert looks.splitlines()[-2].endswith("100%")
    assert cost.count("of the decode at 1/8") == 2
    assert {line.partition("  ")[0] for line in cost.splitlines()} >= {*lint.TEXT_COPIES}


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


def test_every_contender_answers(capsys):
    """Recordgen and every hand-written script predict the same examples.

    The last line has the distance to the best other: the mean, and its standard error over seeds.
    """
    scores = dict(results.run("wine", seed=0, count=44, epochs=1))
    assert [*scores] == ["recordgen", *results.CONTESTS["wine"].rivals]
    assert all(0 <= score <= 1 for score in scores.values())
    results.print_means("wine", {"recordgen": [0.5, 0.7], "a": [0.4, 0.4], "b": [0.0, 0.1]})
    assert capsys.readouterr().out.split()[-4:] == ["a", "+0.200", "±", "0.100"]
