"""The compiled job on scanned digits, run container by container as on Vertex AI.

For the whole pipeline, containers of the image run in a container engine; tests of the ExampleGen
start processes of this machine instead. A folder represents all buckets.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tensorflow_data_validation as tfdv
from gcsfs.core import GCSFileSystem
from PIL import Image

from pipelines import vertex
from pipelines.samples.digits import write_digits
from recordgen.core.dataset.manifest import read_dataset
from tests import vertex_runner
from tests.clusters import dataflow, emulated, environment, object_store
from tests.conftest import error_of
from tests.pipelines.conftest import STEPS

pytestmark = pytest.mark.slow

EXAMPLE_GEN, *_ = STEPS
DIGITS = 400
SETTINGS = [
    *("--image", "recordgen", "--data", "gs://bucket/data", "--pattern", "span-{SPAN}/*.csv"),
    *("--pipeline-root", "gs://bucket/root", "--serving-dir", "gs://models/digits"),
    *("--image-size", "16", "16", "--epochs", "12", "--learning-rate", "0.003"),
    *("--min-score", "0.9"),
]


def compile_job(buckets, *arguments):
    """Compile with the command, and replace gs:// by ``buckets``."""
    path = buckets / "job.json"
    buckets.mkdir(exist_ok=True)
    assert vertex.main([*SETTINGS, "--output", str(path), *arguments]) == 0
    return vertex_runner.in_buckets(json.loads(path.read_text()), buckets)


@pytest.fixture
def buckets(tmp_path):
    """A bucket with 20 digits as span 1."""
    write_digits(str(tmp_path / "buckets/bucket/data/span-1"), 20)
    return tmp_path / "buckets"


@pytest.fixture
def service():
    """Steps are processes of this machine."""
    return vertex_runner.Service(vertex_runner.preloaded(environment()))


def examples(runs):
    """Return the metadata of the Examples artifact."""
    return runs[EXAMPLE_GEN].artifacts["examples"]["metadata"]


# --- the ExampleGen, on this machine


def test_the_cache_sees_images(service, buckets):
    """A changed image of the same name is converted again."""
    job = compile_job(buckets)

    def is_cached():
        return service.run(job, until=EXAMPLE_GEN)[EXAMPLE_GEN].cached

    assert not is_cached()
    assert is_cached()
    with Image.open(buckets / "bucket/data/span-1/images/0003.png") as image:
        image.rotate(90).save(buckets / "bucket/data/span-1/images/0003.png")
    assert not is_cached()


def test_a_span_can_be_asked_for(service, buckets):
    """A run's parameter chooses the span and names the data."""
    write_digits(str(buckets / "bucket/data/span-2"), 30)
    job = compile_job(buckets)
    span = '{"static_range": {"start_span_number": 1, "end_span_number": 1}}'
    given = {"range_config": span, "dataset_version": "v1"}
    found = examples(service.run(job, given, until=EXAMPLE_GEN))
    assert (found["span"], found["examples"], found["dataset_version"]) == (1, 20, "v1")
    assert found["input_fingerprint"].startswith("split:import,num_files:1,")
    assert "\nimages:20,sha256:" in found["input_fingerprint"]


def test_a_span_may_be_a_folder(service, buckets):
    """With a pattern that ends with a slash, TFX's driver finds no folder; ours does."""
    data = buckets / "bucket/data"
    for span, digits in ((4, 3), (5, 2)):
        for digit in range(digits):
            image = (data / f"span-1/images/000{digit}.png").read_bytes()
            folder = data / f"photos-{span}/{'train' if digit else 'val'}/{digit}"
            folder.mkdir(parents=True)
            (folder / "a.png").write_bytes(image)
    runs = service.run(compile_job(buckets, "--pattern", "photos-{SPAN}/"), until=EXAMPLE_GEN)
    found = examples(runs)
    assert (found["span"], found["examples"]) == (5, 2)
    assert '"photos-5/"' in runs[EXAMPLE_GEN].parameters["input_config"]


def test_a_missing_span_ends_the_driver(service, buckets):
    """The last line of the log names the folder and the parameter."""
    error = error_of(vertex_runner.StepFailed, service.run, compile_job(buckets, "--span", "9"))
    assert error.task == EXAMPLE_GEN
    line = error.log.strip().splitlines()[-1]
    assert line.startswith(f"error: {buckets}/bucket/data: Cannot find matching for split import")
    assert "range_config" in line


def test_dataflow_does_the_work(tmp_path):
    """The step starts a job with Dataflow's own client, and describes its result.

    Buckets and Dataflow's service are emulated. TFX's driver would ask Google's own storage: its
    result is given, and the output file is on this machine.
    """
    path = tmp_path / "job.json"
    arguments = ["--output", str(path), "--data", "gs://bucket/data", "--pattern", "span-1/*.csv"]
    flags = ["--runner=DataflowRunner", "--project=my-project", "--region=us-central1"]
    flags += ["--temp_location=gs://bucket/root/dataflow"]
    flags += ["--sdk_container_image=example.com/recordgen:1"]
    assert vertex.main([*SETTINGS, *arguments, "--", *flags]) == 0
    job = json.loads(path.read_text())
    spec, given = job["pipelineSpec"], job["runtimeConfig"]["parameterValues"]
    task = spec["root"]["dag"]["tasks"][EXAMPLE_GEN]
    run = vertex_runner.Run(given, {}, "gs://bucket/root")
    call = vertex_runner.executor_input(EXAMPLE_GEN, task, spec["components"][EXAMPLE_GEN], run)
    call["inputs"]["parameterValues"] |= {"span": 1.0, "input_fingerprint": "as the driver says"}
    call["outputs"]["outputFile"] = str(tmp_path / "executor_output.json")
    container = spec["deploymentSpec"]["executors"][f"{EXAMPLE_GEN}_executor"]["container"]
    words = [*container["command"], *container["args"]]
    words = [vertex_runner.resolve(word, call) for word in words]

    data = Path(write_digits(str(tmp_path / "data"), 20)).parent
    with object_store("bucket") as store, dataflow(store, tmp_path) as endpoint:
        bucket = GCSFileSystem(token="anon", endpoint_url=store)
        for file in (data / "digits.csv", *data.glob("images/*")):
            bucket.pipe(f"bucket/data/span-1/{file.relative_to(data)}", file.read_bytes())
        more = ("--no_auth", f"--dataflow_endpoint={endpoint}")
        start = vertex_runner.natively(environment(**emulated(store)))
        done = start(vertex_runner.Attempt(EXAMPLE_GEN, container["image"], (*words, *more)))
        assert done.returncode == 0, done.stderr
        written = json.loads(bucket.cat_file(f"{run.folder}/{EXAMPLE_GEN}/examples/dataset.json"))
    output = json.loads((tmp_path / "executor_output.json").read_text())
    [found] = output["artifacts"]["examples"]["artifacts"]
    assert found["uri"] == f"{run.folder}/{EXAMPLE_GEN}/examples"
    assert found["metadata"]["examples"] == 20
    assert found["metadata"]["dataset_digest"] == written["digest"]
    pools = json.loads((tmp_path / "0.json").read_text())["environment"]["workerPools"]
    images = {pool["sdkHarnessContainerImages"][0]["containerImage"] for pool in pools}
    assert images == {"example.com/recordgen:1"}


# --- the whole pipeline, in the image


@pytest.fixture(scope="module")
def one_container(engine, tmp_path_factory):
    """The steps share a container that has loaded TFX, which would take ten seconds in each."""
    with vertex_runner.in_one_container(engine, tmp_path_factory.getbasetemp()) as start:
        yield start


@pytest.fixture(scope="module")
def whole(one_container, tmp_path_factory):
    """The pipeline's first run: buckets, job, service and result."""
    buckets = tmp_path_factory.mktemp("buckets")
    write_digits(str(buckets / "bucket/data/span-1"), DIGITS)
    job, service = compile_job(buckets), vertex_runner.Service(one_container)
    return buckets, job, service, service.run(job)


@pytest.mark.container
def test_every_step_runs(whole):
    """From the import file to the pushed model, all artifacts agree with the dataset."""
    buckets, _, _, runs = whole
    assert set(vertex_runner.steps(runs, cached=False)) == {*STEPS}
    found = examples(runs)
    dataset = read_dataset(runs[EXAMPLE_GEN].artifacts["examples"]["uri"])
    assert (found["span"], found["examples"], found["rejects"]) == (1, DIGITS, 0)
    assert (dataset.examples, dataset.digest) == (DIGITS, found["dataset_digest"])

    statistics = Path(runs["StatisticsGen"].artifacts["statistics"]["uri"])
    train = tfdv.load_stats_binary(str(statistics / "Split-train/FeatureStats.pb"))
    assert train.datasets[0].num_examples == found["examples_train"]
    schema = Path(runs["SchemaGen"].artifacts["schema"]["uri"]) / "schema.pbtxt"
    assert "image/class/label" in {f.name for f in tfdv.load_schema_text(str(schema)).feature}
    anomalies = runs["ExampleValidator"].artifacts["anomalies"]["metadata"]
    assert anomalies["blessed"] == {"train": 1, "eval": 1, "test": 1}

    blessing = runs["Evaluator"].artifacts["blessing"]["metadata"]
    assert blessing["blessed"] == 1
    assert blessing["current_model_id"] == runs["Trainer"].artifacts["model"]["name"]
    pushed = runs["Pusher"].artifacts["pushed_model"]["metadata"]
    assert pushed["pushed"] == 1
    assert Path(pushed["pushed_destination"]).parent == buckets / "models/digits"


@pytest.mark.container
def test_a_second_run_comes_from_the_cache_until_a_new_span(whole):
    """Only a new span makes the steps work again."""
    buckets, job, service, _ = whole
    # With the cache of the first run.
    service = replace(service, start=vertex_runner.preloaded(environment()))
    assert set(vertex_runner.steps(service.run(job), cached=True)) == {*STEPS}
    write_digits(str(buckets / "bucket/data/span-2"), 200)
    runs = service.run(job, until="StatisticsGen")
    assert vertex_runner.steps(runs, cached=True) == []
    assert (examples(runs)["span"], examples(runs)["examples"]) == (2, 200)
    assert runs["StatisticsGen"].artifacts["statistics"]["metadata"]["span"] == 2
