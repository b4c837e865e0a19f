"""The fuzzer's targets: their corpus, and a few seconds of fuzzing where atheris is installed."""

import os
from collections import Counter

import pytest

from recordgen.registry import FORMATS
from tests.conftest import COMPONENTS
from tests.formats.sources import Reading
from tests.fuzz.import_files import run
from tests.fuzz.seeds import SEEDS
from tests.fuzz.sources import FAILURES, OPTIONS, SAMPLES, fuzz, source_of
from tests.fuzz.targets import CORPUS, TARGETS
from tests.preloaded import ROOT, Preloaded

INPUTS = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*"))

FUZZ = "from tests.fuzz.__main__ import main; main()"


def test_every_target_has_a_corpus():
    """Without a corpus, the fuzzer would have to find each format first."""
    assert {name.split("/")[0] for name in INPUTS} | set(SEEDS) == set(TARGETS)


@pytest.mark.parametrize("name", INPUTS)
def test_corpus(name):
    """Inputs that failed once stay fixed; this test needs no fuzzer."""
    TARGETS[name.split("/")[0]]((CORPUS / name).read_bytes())


@pytest.mark.parametrize("target", SEEDS)
def test_seeds(target):
    """Inputs made by code pass before they are mutated."""
    for data in SEEDS[target]().values():
        TARGETS[target](data)


@pytest.fixture(scope="module")
def fuzzer():
    """A process that has loaded the targets with instruments."""
    pytest.importorskip("atheris", reason="atheris comes with the extra fuzz")
    loaded = Preloaded(
        "tests.fuzz.__main__",
        environment={
            **os.environ,
            "PYTHONPATH": f"{COMPONENTS}{os.pathsep}{ROOT}",
            "MALLOC_PERTURB_": "165",  # freed memory holds no usable values
        },
    )
    yield loaded
    loaded.close()


@pytest.mark.parametrize("target", TARGETS)
def test_fuzzing_for_a_moment(target, fuzzer, tmp_path):
    """The same inputs in each run, some hundred, find no failure."""
    given = ("--runs=500", "--seed=1", f"--found={tmp_path}/found")
    done = fuzzer.run("-c", FUZZ, target, *given)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "stat::number_of_executed_units" in done.stderr


@pytest.mark.once
def test_import_files_are_read_like_an_independent_reader_reads_them():
    """A hundred and more random files: no traceback, the same rows, and no line is lost."""
    ended = Counter(run(150, seed=1))
    assert ended["compared"] > 35
    assert ended["UsageError"] + ended["SourceError"] + ended["NotUnderstoodError"] > 35


@pytest.mark.once
@pytest.mark.parametrize("name", SAMPLES)
def test_changed_sources_give_rows_rejects_or_errors(name, tmp_path):
    """A source of each format is read; the same four changes in each run give no traceback."""
    ended, _ = fuzz(name, range(4), 1, tmp_path)
    assert ended.keys().isdisjoint(FAILURES)


def test_every_format_is_fuzzed(tmp_path):
    """The sound sources are read as all formats that there are."""
    read = set()
    for name, make in SAMPLES.items():
        (tmp_path / name).mkdir()
        make(tmp_path / name)
        source, options = source_of(tmp_path / name), OPTIONS.get(name, ({},))
        read.add(Reading(str(source), **options[0]).options.format)
    assert read == set(FORMATS)
