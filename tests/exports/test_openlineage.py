"""OpenLineage events are sent as its own settings say, and never end a run."""

import json
import logging
import os
import sys
from unittest import mock

import pytest
from aiohttp import web

from recordgen import convert, read_dataset
from recordgen.errors import NothingToConvertError, UsageError
from recordgen.lineage import dataset_id, is_configured, run_events
from tests import trainer
from tests.conftest import convert_lines
from tests.golden import ROOT, SAMPLES
from tests.servers import serving

RUN = "01938c5a-0000-7000-8000-000000000000"
SOURCE = str(ROOT / "examples" / SAMPLES["text_classification"])


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    """Remove OpenLineage's settings, and those that its client sets."""
    with mock.patch.dict(os.environ):
        for name in list(os.environ):
            if name.startswith("OPENLINEAGE"):
                del os.environ[name]
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        yield


@pytest.fixture
def events(monkeypatch, tmp_path):
    """Return the events written to a file so far."""
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(path))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]


def run():
    """Send the events of a run; return whether the last one was sent."""
    with run_events("job", ["a.csv"], "out") as sent:
        return sent.emit("COMPLETE")


def test_a_conversion_starts_and_completes(events, tmp_path, monkeypatch):
    """START before the first row; COMPLETE with version, schema and counts."""
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "shop")
    convert(SOURCE, tmp_path / "out")
    start, complete = events()
    assert [event["eventType"] for event in (start, complete)] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["job"]["namespace"] == "shop"
    assert start["job"]["name"] == "recordgen.convert.reviews"
    assert [(item["namespace"], item["name"]) for item in start["inputs"]] == [("file", SOURCE)]
    [output] = complete["outputs"]
    assert (output["namespace"], output["name"]) == ("file", str(tmp_path / "out"))
    dataset = read_dataset(str(tmp_path / "out"))
    facets = output["facets"]
    assert facets["version"]["datasetVersion"] == dataset.digest
    fields = {field["name"]: field["type"] for field in facets["schema"]["fields"]}
    assert fields["class/label"] == "int64"
    counts = output["outputFacets"]["outputStatistics"]
    assert (counts["rowCount"], counts["size"], counts["fileCount"]) == (100, dataset.bytes, 3)
    assert complete["producer"].startswith("urn:recordgen:")


def test_a_job_and_its_parent_are_named(events, monkeypatch):
    """The variables name the job, and the run that started it."""
    monkeypatch.setenv("OPENLINEAGE_JOB_NAME", "nightly")
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/pets.convert/{RUN}")
    assert run()
    for event in events():
        assert event["job"]["name"] == "nightly"
        parent = event["run"]["facets"]["parent"]
        assert parent["run"]["runId"] == RUN
        assert (parent["job"]["namespace"], parent["job"]["name"]) == ("airflow", "pets.convert")


def test_a_failure_is_told(events, tmp_path):
    """FAIL has the error's message; an interrupt is ABORT; a DataFrame is no input."""
    with pytest.raises(KeyboardInterrupt), run_events("job", ["DataFrame"], "out"):
        raise KeyboardInterrupt
    told = [(event["eventType"], event["inputs"]) for event in events()]
    assert told == [("START", []), ("ABORT", [])]
    with pytest.raises(NothingToConvertError):
        convert_lines(tmp_path, ["gone.png,cat"], max_reject_fraction=1.0)
    start, fail = events()[2:]
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    assert "1 rows" in fail["run"]["facets"]["errorMessage"]["message"]


@pytest.mark.slow
def test_a_training_reads_what_a_conversion_wrote(events, tmp_path, monkeypatch):
    """Its inputs are named as the output of the conversion; tags are its digest and settings."""
    out = str(tmp_path / "out")
    convert(SOURCE, out)
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/pets.train/{RUN}")
    model = trainer.train(out, tmp_path / "good", epochs=1)
    with pytest.raises(UsageError):
        trainer.train(out, tmp_path / "bad", model="ResNet50")
    [_, written, *trained] = events()
    assert [event["eventType"] for event in trained] == ["START", "COMPLETE", "START", "FAIL"]
    runs = [event["run"]["runId"] for event in trained]
    assert runs[::2] == runs[1::2]
    place = {name: written["outputs"][0][name] for name in ("namespace", "name")}
    for event in trained:
        assert event["job"]["name"] == "recordgen.train.reviews"
        parent = event["run"]["facets"]["parent"]
        assert (parent["run"]["runId"], parent["job"]["name"]) == (RUN, "pets.train")
        assert [{name: it[name] for name in place} for it in event["inputs"]] == [place]
    assert [item["name"] for item in trained[1]["outputs"]] == [model]
    tags = {tag["key"]: tag["value"] for tag in trained[1]["run"]["facets"]["tags"]["tags"]}
    assert (tags["dataset_digest"], tags["epochs"]) == (read_dataset(out).digest, "1")
    assert "ResNet50" in trained[3]["run"]["facets"]["errorMessage"]["message"]


def test_events_go_to_a_service(monkeypatch):
    """Each event is one request."""
    seen = []

    async def answer(request):
        seen.append((request.path, (await request.json())["eventType"]))
        return web.Response(status=201)

    with serving(answer) as url:
        monkeypatch.setenv("OPENLINEAGE_URL", url)
        assert run()
    assert seen == [("/api/v1/lineage", "START"), ("/api/v1/lineage", "COMPLETE")]


FILE = {"OPENLINEAGE__TRANSPORT__TYPE": "file", "OPENLINEAGE__TRANSPORT__APPEND": "true"}

# settings; what the warning names
WRONG = [
    ({"OPENLINEAGE__TRANSPORT__TYPE": "no.such.Transport"}, "no.such.Transport"),
    ({**FILE, "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": "/proc/none/events"}, "event START "),
    ({"OPENLINEAGE_URL": "http://127.0.0.1:1", "OPENLINEAGE_PARENT_ID": "pets"}, "JOB/RUN"),
]


@pytest.mark.parametrize(("settings", "fact"), WRONG)
def test_a_wrong_setting_is_a_warning(settings, fact, monkeypatch, caplog):
    """A transport, a place or a parent that cannot be used ends no run."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING, "recordgen"):
        assert not run()
    assert fact in caplog.text


def test_without_the_client(monkeypatch, caplog):
    """Nothing is imported unless it is configured; then a missing client causes a warning."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "openlineage"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openlineage", None)  # importing it raises ImportError
    assert not run()
    assert not caplog.records
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:1")
    assert not run()
    assert "pip install '.[openlineage]'" in caplog.text


URL = {"OPENLINEAGE_URL": "http://a"}
SETTINGS = [
    ({}, False),
    ({"OPENLINEAGE_NAMESPACE": "shop"}, False),
    ({"OPENLINEAGE_URL": ""}, False),
    (URL, True),
    ({**URL, "OPENLINEAGE_DISABLED": "True"}, False),
    ({"OPENLINEAGE_CONFIG": "a.yml"}, True),
    ({"OPENLINEAGE__TRANSPORT__TYPE": "console"}, True),
    ({"OPENLINEAGE__TRANSPORT": '{"type": "console"}'}, True),
]


def test_settings(tmp_path):
    """Variables or a file give a destination; without one, nothing is sent."""
    for environ, expected in SETTINGS:
        assert is_configured(environ) == expected
    for folder in (".", ".openlineage"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "openlineage.yml").write_text("transport: {type: console}\n")
        assert is_configured({})
        (tmp_path / folder / "openlineage.yml").unlink()


# path, expected
DATASET_NAMES = [
    ("/data/a.csv", ("file", "/data/a.csv")),
    ("gs://bucket/a/b.csv", ("gs://bucket", "a/b.csv")),
    ("s3://bucket/out/", ("s3://bucket", "out")),
    ("https://host:8000/a.csv", ("https://host:8000", "a.csv")),
    ("gs://bucket", ("gs://bucket", "/")),
]


@pytest.mark.parametrize(("path", "expected"), DATASET_NAMES)
def test_names_of_datasets(path, expected):
    """The namespace is the store, the name the path in it."""
    assert dataset_id(path) == expected
