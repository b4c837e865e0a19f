"""Lineage from a model to its import files, without a metadata store."""

import json
import os
import platform
import shutil
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web

from recordgen import convert, lineage, write
from recordgen.cli import main
from recordgen.core.dataset.manifest import read_dataset
from recordgen.errors import SourceError
from recordgen.exports.lineage import find_lineage, lineage_lines
from recordgen.kubeflow.models import copy_model
from tests.conftest import flip_bit
from tests.golden import ROOT, SAMPLES
from tests.servers import serving

SOURCE = str(ROOT / "examples" / SAMPLES["text_classification"])


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    out = tmp_path_factory.mktemp("lineage") / "out"
    convert(SOURCE, out, seed=3)
    return out


@pytest.fixture
def output(converted, tmp_path):
    return Path(shutil.copytree(converted, tmp_path / "out"))


@pytest.fixture
def model(output, tmp_path):
    """A saved model's folder with the lineage that a training writes."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(b"x")
    dataset = lineage.DatasetLineage.of(os.path.relpath(output), read_dataset(str(output)))
    lineage.write_lineage(str(folder), lineage.ModelLineage(dataset, "train", {"epochs": 3}))
    return folder


def test_a_model_leads_to_its_import_files(model, output, stdout_of, json_of):
    """As text, from the model down to the rows, and as JSON."""
    dataset = read_dataset(str(output))
    lines = stdout_of("export", "lineage", model).splitlines()
    assert lines[0] == f"model {model}"
    place, digest = f"    dataset {output}", f"      digest {dataset.digest}"
    assert lines[2:6] == ["  with epochs=3", "  from", place, digest]
    assert "      100 examples (train 70, eval 20, test 10), 4 labels" in lines
    assert lines[-2:] == ["      from 100 rows, 0 rejected", f"        {SOURCE}"]
    found = json_of("export", "lineage", model)
    assert (found["model"]["split"], found["dataset_state"]) == ("train", "same")
    assert found["dataset"]["digest"] == dataset.digest
    assert found["dataset"]["options"]["seed"] == found["dataset"]["seed"] == 3


def test_verified_files(model, output, json_of):
    """Without --verify only digests in dataset.json count; a flipped bit is damage, and exit 1."""
    [shard] = (output / "Split-train").iterdir()
    for place in (model, output):
        found = json_of("export", "lineage", place, "--verify")
        assert (found["dataset_state"], found["differences"]) == ("same", [])
    flip_bit(shard, 100)
    for place in (model, output):
        assert json_of("export", "lineage", place)["dataset_state"] == "same"
        found = json_of("export", "lineage", place, "--verify", code=1)
        assert found["dataset_state"] == "damaged"
        assert [item["file"] for item in found["differences"]] == [f"Split-train/{shard.name}"]


def test_software_is_what_runs_here():
    """Versions of libraries; commit and image only if a variable names them."""
    said = {"GITHUB_SHA": "3f0c", "RECORDGEN_COMMIT": "", "RECORDGEN_IMAGE": "example/train:2"}
    found = lineage.software_here(said)
    assert found["python"] == platform.python_version()
    assert (found["commit"], found["image"]) == ("3f0c", "example/train:2")
    assert found["numpy"] == np.__version__
    assert not {"commit", "image"} & lineage.software_here({}).keys()


def test_a_pushed_model_keeps_it(model, tmp_path):
    """Lineage is found in a server's newest version, and in TFX's artifact."""
    for version in ("99", "100"):
        copy_model(str(model), str(tmp_path / "serving" / version))
    text = (model / lineage.LINEAGE_FILE).read_text().replace('"epochs": 3', '"epochs": 4')
    (tmp_path / "serving/100" / lineage.LINEAGE_FILE).write_text(text)
    found = find_lineage(tmp_path / "serving")
    assert found.place == str(tmp_path / "serving/100")
    assert found.model is not None
    assert found.model.settings == {"epochs": 4}
    copy_model(str(model), str(tmp_path / "artifact/Format-Serving"))
    assert find_lineage(tmp_path / "artifact").dataset == find_lineage(model).dataset


def test_the_dataset_may_have_changed_or_gone(model, output):
    """A dataset is compared by its digest; with --verify, only the same one is exit 0."""
    convert(SOURCE, output, seed=4, overwrite=True)
    assert find_lineage(model).state == "changed"
    assert main(["export", "lineage", str(model)]) == 0
    assert main(["export", "lineage", str(model), "--verify"]) == 1
    (output / "dataset.json").unlink()
    assert find_lineage(model).state == "missing"
    assert main(["export", "lineage", str(model), "--verify"]) == 1


def test_an_output_leads_to_its_import_files(output, tmp_path):
    """A dataset from Python has none."""
    found = find_lineage(output)
    assert found.model is None
    assert list(lineage_lines(found))[-1].strip() == SOURCE
    write([{"x": 1}], tmp_path / "written")
    assert list(lineage_lines(find_lineage(tmp_path / "written")))[-1] == "  written from Python"


def test_rows_of_an_earlier_run_count_once(output):
    """A run that appends nothing has read rows that exist already."""
    convert(SOURCE, output, seed=3, append=True)
    assert find_lineage(output).dataset.rows == 100


@pytest.mark.parametrize("text", ["[]", "{", '{"format": "recordgen-lineage/1"}', '{"format": 2}'])
def test_a_damaged_lineage_names_its_file(model, text):
    """So does a folder that has neither a model nor a dataset."""
    (model / lineage.LINEAGE_FILE).write_text(text)
    with pytest.raises(SourceError, match=r"lineage\.json: .*recordgen-lineage/1"):
        find_lineage(model)
    with pytest.raises(SourceError, match=r"dataset\.json.* assets\.extra/lineage"):
        find_lineage(model.parent)


def test_a_foreign_model_causes_no_requests(model, output, stdout_of, json_of):
    """The server that lineage.json names is asked only if an option allows it."""
    asked = []

    async def answer(request):
        asked.append(request.path)
        return web.Response(body=(output / "dataset.json").read_bytes())

    with serving(answer) as server:
        for place in (f"{server}/out", server.replace("http", "HTTP") + "/out"):
            values = json.loads((model / lineage.LINEAGE_FILE).read_text())
            values["dataset"]["uri"] = place
            (model / lineage.LINEAGE_FILE).write_text(json.dumps(values))
            found = find_lineage(model)
            assert (found.state, asked) == ("unchecked", [])
            assert "--allow http " in found.refusal
            assert main(["export", "lineage", str(model), "--verify"]) == 1
            assert f"{found.refusal})" in stdout_of("export", "lineage", model)
            assert find_lineage(model, allow=f"{server}/other").state == "unchecked"
            assert asked == []
        for allow in ("http", ["http", f"{server}/out"]):
            assert find_lineage(model, allow=allow).state == "same"
        found = json_of("export", "lineage", model, "--allow", "http")
        assert found["dataset_state"] == "same"
        assert len(asked) >= 3
