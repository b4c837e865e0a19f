"""A finished output is compared with its ``dataset.json``."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web

import recordgen
from recordgen.cli import main
from recordgen.exports.verifying import is_finished, verify
from tests.conftest import flip_bit, rewrite_records
from tests.servers import serving

SHARD = "Split-train/data_tfrecord-00000-of-00001"


@pytest.fixture
def output(sample, tmp_path):
    return Path(shutil.copytree(sample("image_classification"), tmp_path / "out"))


def with_another_image(values):
    """Return the features of a record with a changed bit in its image."""
    [image] = values["image/encoded"]
    return {**values, "image/encoded": image[:-3] + bytes([image[-3] ^ 1]) + image[-2:]}


# name: (a function that changes an output, the files that then differ)
CHANGES = {
    "a flipped bit": (lambda out: flip_bit(out / SHARD), {SHARD}),
    "another image": (lambda out: rewrite_records(out / SHARD, with_another_image), {SHARD}),
    "a missing shard": (lambda out: (out / SHARD).unlink(), {SHARD}),
    "a cut shard": (lambda out: os.truncate(out / SHARD, 999), {SHARD}),
    "a strange file": (lambda out: (out / "Split-train/x").touch(), {"Split-train/x"}),
    "other labels": (lambda out: (out / "labels.txt").write_text("cat\n"), {"labels.txt"}),
    "another index": (lambda out: np.save(out / "records.npy", [1]), {"records.npy"}),
    "a missing index": (lambda out: (out / "records.npy").unlink(), {"records.npy"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_found(change, output, json_of):
    """The exit code is 1, and the JSON names the files that differ."""
    make, files = CHANGES[change]
    make(output)
    assert {each["file"] for each in json_of("check", output, code=1)["differences"]} == files


def test_an_output_is_as_it_was_written(output, stdout_of):
    """Exit 0 and the digest; options of import files are refused, and other programs' files."""
    assert main(["check", str(output), "--seed", "3"]) == 2
    (output.parent / "dataset.json").write_text("{}")
    assert not is_finished(str(output.parent))
    assert recordgen.read_dataset(output).digest in stdout_of("check", output)


def test_examples_from_python_are_compared(tmp_path):
    """Their digest covers whole records."""
    out = tmp_path / "out"
    recordgen.write([{"x": 1}, {"x": 2}], str(out), shards=1)
    assert not verify(str(out)).differences
    flip_bit(out / SHARD)
    assert [each.file for each in verify(str(out)).differences] == [SHARD]


def test_a_store_that_hides_what_is_missing_has_no_finished_output():
    """It answers 403 to whoever asks for a file that is not there."""

    async def answer(request):
        if request.path == "/rows.csv":
            return web.Response(text="TRAIN,a good text,good\nTEST,a bad text,bad\n")
        return web.Response(status=403)

    with serving(answer) as url:
        assert main(["check", f"{url}/rows.csv", "-q"]) == 0
