"""Readers of untrusted bytes: inputs that failed once, and inputs changed at random."""

from collections import Counter
from random import Random

import pytest

from recordgen.registry import FORMATS
from tests.formats.sources import Reading
from tests.fuzz.import_files import run
from tests.fuzz.sources import FAILURES, OPTIONS, SAMPLES, changed, fuzz, source_of
from tests.fuzz.targets import CORPUS, TARGETS

INPUTS = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*"))


def test_every_target_has_a_corpus():
    """Changes at random would hardly find the format of an input."""
    assert {name.split("/")[0] for name in INPUTS} == set(TARGETS)


@pytest.mark.parametrize("name", INPUTS)
def test_corpus(name):
    """Inputs that failed once stay fixed, also if they are changed, each time alike, to 4 KB."""
    fuzzed, data, rng = TARGETS[name.split("/")[0]], (CORPUS / name).read_bytes(), Random(name)
    fuzzed(data)
    for _ in range(100):
        fuzzed(changed(rng, data)[:4096])


@pytest.mark.once
def test_import_files_are_read_as_the_rows_that_were_written(tmp_path):
    """Random files of known rows: they are read as these rows, or one error; none is lost."""
    ended = Counter(run(150, 1, tmp_path))
    assert ended["read"] > 75
    assert ended["NotUnderstoodError"] > 25


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
