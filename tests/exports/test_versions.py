"""Datasets and models that each released version wrote: read, verified, appended to, traced.

tests/versions/VERSION/NAME/rows.*          the import file, from the beginnings of the samples
                            out/            what that version's ``convert rows.* out`` wrote
                            lineage.json    what its training wrote, with ``OUT`` as the dataset
"""

import json
import shutil
from pathlib import Path

import pytest

import recordgen
from recordgen.cli import main
from recordgen.errors import SourceError
from recordgen.exports.lineage import find_lineage
from recordgen.lineage import LINEAGE_FILE
from tests.conftest import changed_manifest
from tests.golden import ROOT

WRITTEN = sorted((ROOT / "tests/versions").glob("*/*"))

# What a later version may write.
LATER = {"recordgen_version": "9.0.0", "format": "recordgen/2"}


@pytest.fixture(params=WRITTEN, ids=lambda folder: "-".join(folder.parts[-2:]))
def written(request, tmp_path, monkeypatch):
    """A copy of a dataset and its import file; the current folder is theirs."""
    monkeypatch.chdir(shutil.copytree(request.param, tmp_path / "copy"))
    return recordgen.read_dataset("out")


def trace(values):
    """Return the folder of a model with a lineage."""
    model = Path("model")
    (model / LINEAGE_FILE).parent.mkdir(parents=True)
    (model / LINEAGE_FILE).write_text(json.dumps(values))
    return model


def test_it_is_read_and_verified(written):
    """Every record is as it was written, and is read, whatever became of options and measures."""
    with changed_manifest("out") as values:
        values |= {"options": {**written.options, "check": "gone", "goes": "too"}, "psnr": {"n": 1}}
    assert main(["check", "out"]) == 0
    counts = {name: len(recordgen.source("out", split=name)) for name in written.splits}
    assert counts == {name: split.examples for name, split in written.splits.items()}


def test_the_same_rows_are_no_new_ones(written):
    """Appending them keeps the digest; rows of tables have no name, so nothing is appended."""
    [rows] = Path().glob("rows.*")
    named = written.task != "tabular"
    for path in (rows, rows.resolve()):
        assert main(["convert", str(path), "out", "--append"]) == (0 if named else 2)
        assert recordgen.read_dataset("out").digest == written.digest


def test_its_model_leads_to_it(written):
    """The state is found by the digest; the dataset is verified without its options."""
    [lineage] = (ROOT / "tests/versions" / written.recordgen_version).glob("*/lineage.json")
    values = json.loads(lineage.read_text())
    values["dataset"].update(uri="out", digest=written.digest)
    model = trace(values)
    assert main(["export", "lineage", str(model), "--verify"]) == 0
    assert find_lineage(model).model.recordgen_version == written.recordgen_version


@pytest.mark.parametrize("written", WRITTEN[:1], indirect=True)
@pytest.mark.parametrize("change", [LATER, {**LATER, "format": "recordgen/1", "more": 1}])
def test_a_later_version_is_named(written, change):
    """What this version cannot read names the version that can."""
    with changed_manifest("out") as values:
        values |= change
    with pytest.raises(SourceError, match=r"9\.0\.0"):
        recordgen.read_dataset("out")
    with pytest.raises(SourceError, match=r"9\.0\.0"):
        find_lineage(trace(change))
