"""The same pipeline on Beam's local and remote runners, and workers that die."""

import os
import pickle
import re
import signal
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from gcsfs.core import GCSFileSystem

import recordgen
from recordgen import storage
from recordgen.beam import beam_flags, pipeline_factory, runner_factory
from recordgen.beam.beam_runner import BeamRunner
from recordgen.conversion.examination import Stage
from recordgen.core.flow import graph
from recordgen.core.flow.runner import OUT_OF_MEMORY, Each, LocalRunner, MergeFound
from recordgen.core.planning.plan import RowBlock
from recordgen.core.rows.columns import columns_of
from recordgen.core.rows.row import PlacedRow, placing
from recordgen.core.runs.commit import Run
from recordgen.core.runs.staging import Staging
from recordgen.errors import DataError, RunnerError, StorageError, TooManyRejectsError, UsageError
from recordgen.formats.import_file import find_import_files
from recordgen.formats.source import Source
from recordgen.storage.local import Spool
from tests import clusters
from tests.conftest import ROOT, examples_of, tree_bytes, wait_for_first_shard, write_noise
from tests.settings import conversion

pytestmark = pytest.mark.inside

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return an import file of 60 images, nearly all of them in one split, and a bad row."""
    folder = tmp_path_factory.mktemp("source")
    names, splits = [f"{number:03d}.jpg" for number in range(60)], ["VALIDATION", "TEST", ""]
    write_noise(folder, names, 64, 48)
    found = zip(splits + ["TRAIN"] * 57, names, strict=True)
    lines = [f"{split},{name},{number % 3}" for number, (split, name) in enumerate(found)]
    (folder / "labels.csv").write_text("\n".join([*lines, "TRAIN,nowhere.jpg,1"]))
    return str(folder / "labels.csv")


#: Options of the conversions; they give about 20 shards.
_OPTIONS = {"shard_mb": 0.01, "seed": 3, "max_reject_fraction": 0.1}


@pytest.fixture(scope="module")
def expected(source, tmp_path_factory):
    """Return the files that the in-memory runner writes."""
    output = tmp_path_factory.mktemp("expected") / "out"
    recordgen.convert(source, output, **_OPTIONS)
    files = tree_bytes(output)
    assert len(files) > 20
    return files


@pytest.fixture(scope="module")
def cluster():
    """Run a Dask cluster of two worker processes, each with a nanny that restarts it."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as running:
        yield running


def on_dask(cluster, parts=4):
    """Return the flags for a Dask cluster."""
    address = f"--dask_client_address={cluster.scheduler_address}"
    return ["--runner=DaskRunner", address, f"--dask_npartitions={parts}"]


# --- the same bytes ----------------------------------------------------------------------------


def test_a_portable_job_server_writes_the_same_bytes(source, expected, tmp_path):
    """Workers elsewhere write what this process writes."""
    with clusters.job_server() as (endpoint, _), clusters.worker_pool() as workers:
        flags = ["--runner=PortableRunner", f"--job_endpoint={endpoint}"]
        flags += ["--environment_type=EXTERNAL", f"--environment_config={workers}"]
        recordgen.convert(source, tmp_path / "out", beam_args=flags, **_OPTIONS)
    assert tree_bytes(tmp_path / "out") == expected


def test_dask_writes_the_same_bytes_and_checks_on_its_workers(
    source, expected, tmp_path, cluster, monkeypatch
):
    """The launcher's own process runs no step of the checks, and the findings are the same."""

    def process(step, element):
        raise AssertionError(f"{type(step).__name__} runs on the launcher")

    for step in (*Stage.__subclasses__(), MergeFound):
        monkeypatch.setattr(step, "process", process)
    recordgen.convert(source, tmp_path / "out", beam_args=on_dask(cluster), **_OPTIONS)
    assert tree_bytes(tmp_path / "out") == expected
    with pytest.raises(AssertionError, match="NoteKeys"):
        recordgen.convert(source, tmp_path / "here", **_OPTIONS)


def test_check_and_dry_run_work_on_dask(source, cluster):
    """They find the same as in this process."""
    options = {**_OPTIONS, "max_reject_fraction": 1.0}
    here = recordgen.check(source, **options)
    there = recordgen.check(source, beam_args=on_dask(cluster), **options)
    assert (there.dataset, there.rejects) == (here.dataset, here.rejects)
    planned = recordgen.plan(source, beam_args=on_dask(cluster), **options)
    assert planned == recordgen.plan(source, **options)


def test_an_error_on_dask_keeps_its_type(source, tmp_path, cluster):
    """A user's error arrives as itself, whatever the runner wraps it in."""
    with pytest.raises(TooManyRejectsError, match="61"):
        recordgen.convert(source, tmp_path / "out", beam_args=on_dask(cluster), shard_mb=0.01)
    text = Path(source).with_name("text.csv")
    text.write_text("TRAIN,001.jpg,cat")
    with pytest.raises(DataError, match="'cat'"):
        recordgen.convert(text, tmp_path / "out", beam_args=on_dask(cluster), labels="integer")


@pytest.mark.slow
def test_dataflow(source, expected, tmp_path):
    """Dataflow's own client sends a job that gives the same bytes when it is run as sent.

    Its bucket is emulated, and a service of ours receives the job instead of Google's.
    """
    with clusters.object_store("bucket") as store, clusters.dataflow(store, tmp_path) as endpoint:
        bucket = GCSFileSystem(token="anon", endpoint_url=store)
        for path in Path(source).parent.iterdir():
            bucket.pipe(f"bucket/data/{path.name}", path.read_bytes())
        done = subprocess.run(
            [
                *(sys.executable, "-m", "recordgen.cli", "convert", "-q"),
                *("gs://bucket/data/labels.csv", "gs://bucket/out", "--shard-mb=0.01", "--seed=3"),
                *("--max-reject-fraction=0.1", "--", "--runner=DataflowRunner", "--no_auth"),
                *("--project=my-project", "--region=us-central1", f"--setup_file={ROOT}/setup.py"),
                *("--temp_location=gs://bucket/tmp", f"--dataflow_endpoint={endpoint}"),
                "--sdk_container_image=example.com/recordgen:1",
            ],
            env=clusters.environment(**clusters.emulated(store)),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        paths = bucket.find("bucket/out")
        found = {path.removeprefix("bucket/out/"): bucket.cat_file(path) for path in paths}
        [staged] = [path for path in bucket.find("bucket/tmp") if path.endswith("workflow.tar.gz")]
        package = tmp_path / "workflow.tar.gz"
        package.write_bytes(bucket.cat_file(staged))

    here = str(Path(source).parent)
    assert examples_of(found) == examples_of(expected)
    assert found == {
        name: data.replace(here.encode(), b"gs://bucket/data") if "Split-" not in name else data
        for name, data in expected.items()
    } | {"examples.parquet": found["examples.parquet"]}

    # Workers install the package of this repository: all of it.
    with tarfile.open(package) as archive:
        sent = {name.partition("/")[2] for name in archive.getnames()}
    parts = [*ROOT.glob("components/recordgen/**/*.py"), *ROOT.glob("components/**/*.html")]
    assert {path.relative_to(ROOT).as_posix() for path in parts} <= sent


# --- work spreads ------------------------------------------------------------------------------


def conversion_graph(source, folder, **options):
    """Return the Beam pipeline of a conversion."""
    pipeline = pipeline_factory([])()
    runner = BeamRunner(pipeline)
    decoded = conversion(**options)
    staging = Staging(str(folder))
    rows = Source.of_files(find_import_files(source))
    shards = graph.plan_rows(runner, rows, decoded, staging)
    graph.write_shards(shards, decoded, Run(staging))
    return pipeline.to_runner_api()


def side_inputs(graph):
    """Return the names of steps that have a side input."""
    return [
        transform.unique_name
        for transform in graph.components.transforms.values()
        if transform.spec.urn == common_urns.primitives.PAR_DO.urn
        and beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload).side_inputs
    ]


@pytest.mark.parametrize("missing_split", ["assign", "drop"])
def test_shards_are_written_apart_from_planning(source, tmp_path, missing_split):
    """Beam's fusion keeps the groupings between reading, resolving, planning and writing.

    Fused steps stay on one worker, so work can spread only at these places. No step has a side
    input: Dask's runner would compute everything that leads to it again, for each partition.
    """
    graph = conversion_graph(source, tmp_path, missing_split=missing_split)
    assert side_inputs(graph) == []
    names = [transform.unique_name for transform in graph.components.transforms.values()]
    assert not any(name.endswith("/Reshuffle") for name in names)  # one import file needs none
    _, stages = FnApiRunner().create_stages(graph)
    steps = ["ReadRows", "ResolveBuckets", "MakePlan", "WriteShards"]
    fused = [
        [step for step in steps if any(t.unique_name == step for t in stage.transforms)]
        for stage in stages
    ]
    stages = sorted(filter(None, fused), key=lambda names: steps.index(names[0]))
    assert stages == [["ReadRows"], ["ResolveBuckets"], ["MakePlan"], ["WriteShards"]]


# --- workers die -------------------------------------------------------------------------------


def kill_once_writing(output, pid):
    """Kill a process with SIGKILL as soon as the first shard is written."""

    def kill():
        wait_for_first_shard(output)
        os.kill(pid(), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_dead_dask_worker_leaves_no_trace(slow_source, tmp_path, out, cluster):
    """Its work is done again, with the same bytes."""
    recordgen.convert(slow_source, tmp_path / "undisturbed", shard_mb=1)
    nanny = cluster.workers[0]
    victim = nanny.pid
    killing = kill_once_writing(out, lambda: victim)
    recordgen.convert(slow_source, out, shard_mb=1, beam_args=on_dask(cluster, parts=8))
    killing.join()
    assert nanny.pid != victim  # it died, and the nanny started another one
    assert tree_bytes(out) == tree_bytes(tmp_path / "undisturbed")  # no .tmp, no staging folder


# --- missing and wrong flags -------------------------------------------------------------------

_CLOUD = ["--runner=DataflowRunner", "--project=p", "--region=r", "--temp_location=gs://b/tmp"]

# flags; words of the message
LACKING = [
    (["--runner=DataflowRunner"], r"--project.*--region"),
    (_CLOUD[:3], "--temp_location"),
    ([*_CLOUD[:3], "--temp_location", "/tmp"], "/tmp"),
    (_CLOUD, r"--sdk_container_image.*IMAGE"),
    ([*_CLOUD, "--setup_file=./setup.py", "--template_location=gs://b/t"], "--template_location"),
    ([*_CLOUD, "--setup_file=./setup.py", "--num_worker=2"], "--num_worker"),
    (["--runner=DaskRunner", "--dask_npartition=2"], "--dask_npartition"),
    (["--direct_num_worker=2"], "--direct_num_worker=2"),
    (["--runner=NoSuchRunner"], "NoSuchRunner"),
]


@pytest.mark.parametrize(("flags", "words"), LACKING, ids=[words for _, words in LACKING])
def test_missing_or_wrong_flags_are_an_error_before_anything_is_done(flags, words):
    """The message names the flag."""
    with pytest.raises(UsageError, match=words):
        pipeline_factory(flags)()


def test_a_wrong_address_fails_and_touches_no_output(source, tmp_path, monkeypatch):
    """No scheduler or job server answers there."""
    monkeypatch.setattr("recordgen.beam.CONNECT_SECONDS", 1)
    address = f"127.0.0.1:{clusters.free_port()}"
    for flags in (
        ["--runner=DaskRunner", f"--dask_client_address=tcp://{address}"],
        ["--runner=PortableRunner", "--job_endpoint", address],
    ):
        with pytest.raises(RunnerError, match=address):
            recordgen.convert(source, tmp_path / "out", beam_args=flags)
    assert not (tmp_path / "out").exists()


def test_without_dask_the_error_names_the_extra(monkeypatch):
    """The message can be copied into a shell."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"'recordgen\[dask\]'"):
        pipeline_factory(["--runner=DaskRunner"])()


def test_dataflow_refuses_local_files_and_outputs(source, tmp_path):
    """Workers on other machines cannot reach them."""
    cloud = [*_CLOUD, "--setup_file=./setup.py"]
    with pytest.raises(UsageError, match=r"labels\.csv"):
        recordgen.convert(source, "memory://out", beam_args=cloud)
    far = "memory://far/labels.csv"
    storage.write_text(far, "image_id,label\n1,a\n")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/1.jpg").touch()
    with pytest.raises(UsageError, match="photos"):
        recordgen.convert(far, "memory://out", beam_args=cloud, image_root=tmp_path / "photos")
    frame = pd.DataFrame({"image_uri": ["gs://b/1.jpg", "2.jpg"], "label": ["a", "b"]})
    with pytest.raises(UsageError, match=r"2\.jpg"):
        recordgen.convert(frame, "memory://out", beam_args=cloud)
    with pytest.raises(UsageError):
        recordgen.convert(frame.head(1), tmp_path / "out", beam_args=cloud)


# given flags; Beam's flags
FLAGS = [
    (["--runner", "daskrunner"], ["--dask_npartitions=8"]),
    (["--runner=DaskRunner", "--dask_partition_size=1"], []),
    (["--direct_num_workers=2"], ["--direct_running_mode=multi_threading"]),
]


@pytest.mark.parametrize(("given", "added"), FLAGS)
def test_defaults_are_added_where_none_are_given(given, added):
    """A user's own flags stay."""
    known = {flag.split("=")[0] for flag in given}
    more = [f for f in beam_flags(given) if f.split("=")[0] not in {*known, "--runner"}]
    assert more == added


# --- this process ------------------------------------------------------------------------------


def test_a_row_travels_in_at_most_110_bytes():
    """Images never travel: docs/runners.md compares these bytes with theirs."""
    uris = [f"gs://my-bucket/datasets/flowers/images/{n:09d}.jpg" for n in range(1000)]
    labels = "gs://my-bucket/labels.csv"
    placed = [PlacedRow(*placing(0)(u), labels, n, None, u, "rose") for n, u in enumerate(uris)]
    assert len(pickle.dumps(RowBlock(columns_of(PlacedRow, placed)))) / len(uris) < 110


def test_two_consumers_of_a_flow_get_all_elements_in_order():
    """Nothing is computed before the run."""
    runner, seen = LocalRunner(), list[Any]()
    numbers, again = runner.start("Numbers", range(6)).twice()
    halves = numbers.through("Halve", Each(lambda n: [(n % 2, n)], Staging("")))
    odd = again.through("Odd", Each(lambda n: [(9, n)] * (n % 2), Staging("")))
    groups = halves.merged("Both", [odd]).grouped("Group")
    groups.through("See", Each(lambda group: seen.append(group) or (), Staging("")))
    assert seen == []  # nothing is done before it runs
    runner.run(Staging(""))
    assert seen == [(0, [0, 2, 4]), (1, [1, 3, 5]), (9, [1, 3, 5])]


def test_values_of_groups_wait_in_a_file(monkeypatch):
    """Memory holds eight of fifty blocks, whichever group has them."""
    block_bytes, most = 8 << 14, 0
    monkeypatch.setattr("recordgen.core.flow.runner._BYTES_IN_MEMORY", 8 * block_bytes)
    runner, seen, before = LocalRunner(), list[Any](), pa.total_allocated_bytes()

    def blocks():
        nonlocal most
        for n in range(50):
            yield n % 5, RowBlock(pa.table({"n": pa.array([n] * (1 << 14))}))
            most = max(most, pa.total_allocated_bytes() - before)

    groups = runner.start("Blocks", blocks()).grouped("Group")
    numbers = groups.through("Numbers", Each(_first_numbers, Staging("")))
    numbers.through("See", Each(lambda group: seen.append(group) or (), Staging("")))
    runner.run(Staging(""))
    assert seen == [(key, list(range(key, 50, 5))) for key in range(5)]
    assert most < 15 * block_bytes


def _first_numbers(group):
    return [(group[0], [block.columns["n"][0].as_py() for block in group[1]])]


def test_what_waits_in_a_file_gives_the_same_bytes(source, expected, tmp_path, monkeypatch):
    """Memory decides nothing about the output; without a folder for the file, a run stops."""
    monkeypatch.setattr("recordgen.core.flow.runner._BYTES_IN_MEMORY", 0)
    monkeypatch.setattr(Spool, "in_memory", 0)
    recordgen.convert(source, tmp_path / "out", **_OPTIONS)
    assert tree_bytes(tmp_path / "out") == expected
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(StorageError, match="TMPDIR"):
        recordgen.convert(source, tmp_path / "again", **_OPTIONS)


# error, raised, fact
RAISED = [
    (UsageError("so not"), UsageError, "so not"),
    (MemoryError(), RunnerError, OUT_OF_MEMORY),
    (OSError(28, "No space left on device"), RunnerError, "No space left on device"),
    (RuntimeError("can't start new thread"), RunnerError, "can't start new thread"),
    (ZeroDivisionError("a bug"), ZeroDivisionError, "a bug"),
]


@pytest.mark.parametrize(("error", "raised", "fact"), RAISED)
def test_our_errors_stay_and_bugs_keep_their_traceback(error, raised, fact):
    """Faults of the machine become errors that name them."""

    def fail(_):
        raise error

    runner = LocalRunner()
    runner.start("One", [1]).through("Fail", Each(fail, Staging("")))
    with pytest.raises(raised, match=re.escape(fact)):
        runner.run(Staging(""))


@pytest.mark.parametrize("flags", [[], ["--runner=directRunner"], ["--runner", "DirectRunner"]])
def test_the_default_runner_needs_no_beam(flags, monkeypatch):
    """Other flags do, and Beam's processes are refused."""
    monkeypatch.setitem(sys.modules, "recordgen.beam.beam_runner", None)
    assert isinstance(runner_factory(flags)(), LocalRunner)
    with pytest.raises(UsageError, match=r"'recordgen\[beam\]'"):
        runner_factory([*flags, "--direct_num_workers=2"])
    with pytest.raises(UsageError, match="threads"):
        runner_factory([*flags, "--direct_running_mode=multi_processing"])
