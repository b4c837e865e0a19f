"""Progress of a run: heartbeats, snapshots, log lines, Beam's counters."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions

from recordgen.beam import IN_MEMORY_RUNNER
from recordgen.beam.beam_runner import BeamRunner
from recordgen.console import logs
from recordgen.conversion import api as conversion
from recordgen.conversion import summaries
from recordgen.conversion.results import as_flags
from recordgen.core import progress as counters
from recordgen.core.dataset.counts import RowCounts
from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.flow.graph import watching
from recordgen.core.flow.steps import SettleBuckets
from recordgen.core.progress import Pace, Snapshot
from recordgen.core.runs.staging import ROW_FILES, Heartbeat, Staging
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions
from tests.conftest import encoded, interrupt_convert, noise, python_environment, run_python
from tests.planned import plan_of
from tests.preloaded import WITH_BEAM

DOCS = Path(__file__).parents[3] / "docs/running.md"

# The fields of each event, without the fields of every line; docs/running.md explains them.
ROWS = {"rows_read", "rows_planned", "rows_rejected", "seconds"}
FIELDS = {
    "started": {"command", "source", "output", "version"},
    "detected": {"task", "reason", "format", "delimiter", "header", "columns"}
    | {"splits", "rows", "image_root", "found_by_name"},
    "planning": ROWS,
    "planned": ROWS | {"planned_bytes"},
    "progress": ROWS
    | {"planned_bytes", "examples_written", "payloads_rejected", "payload_bytes"}
    | {"examples_per_s", "seconds_left"},
    "warning": set(),
    "finished": ROWS
    | {"rows_duplicate", "rows_merged", "rows_dropped", "rows_existing", "examples_written"}
    | {"payloads_rejected", "payload_bytes", "shard_bytes", "rejected", "exit_code", "output"}
    | {"digest", "phases"},
    "phase": {"name", "seconds"},
    "failed": {"error", "exit_code"},  # bad data: rejected, rejects_file; refusals: reason, command
    "interrupted": {"exit_code"},
}
COUNTS = ("ROWS_", "EXAMPLES_", "PAYLOADS_", "PAYLOAD_", "SHARD_")
DECIDED = ConvertOptions(task="image_classification", format="csv")
EVERY_LINE = {"time", "level", "event", "message", "logger"}


@pytest.fixture
def mixed_source(make_images, make_csv, tmp_path):
    """Return 4 good rows, 1 duplicate, 1 dropped, 2 rejected in planning, 1 bad payload."""
    paths = make_images(5)
    (tmp_path / "cut.jpg").write_bytes(encoded(noise(), "JPEG")[:-40])
    good = [f"TRAIN,{path},cat" for path in paths[:4]]
    return make_csv(
        [*good, good[0], f"{paths[4]},cat", "TRAIN,no.jpg,cat", "TRIAN,x.jpg", "TRAIN,cut.jpg,cat"]
    )


@pytest.fixture
def logged(caplog, monkeypatch):
    """Return a function that returns the lines of our logger so far, as JSON."""
    monkeypatch.setattr(caplog.handler, "formatter", logs.JsonFormatter())
    caplog.set_level(logging.INFO, "recordgen")
    return lambda: [json.loads(line) for line in caplog.text.splitlines() if ': "recordgen' in line]


def recordgen(*args):
    return WITH_BEAM.run("-m", "recordgen.cli", *args)


def check_line(line):
    """Check that a line has exactly the fields of its event."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert set(line) == EVERY_LINE | FIELDS[line["event"]]


# --- one name for each count ------------------------------------------------------------------


def test_beam_metrics_log_and_dataset_agree(mixed_source, tmp_path, logged):
    """Each count has one value in Beam's counters, the log, the result and dataset.json."""
    results = []

    class Kept(beam.Pipeline):
        def run(self, *args, **more):
            results.append(super().run(*args, **more))
            return results[-1]

    output, flags = str(tmp_path / "out"), [f"--runner={IN_MEMORY_RUNNER}"]
    result = conversion.convert_files(
        [ImportFile(mixed_source)],
        output,
        ConvertOptions(missing_split="drop", max_reject_fraction=0.5),
        new_runner=lambda: BeamRunner(Kept(options=PipelineOptions(flags))),
    )
    summaries.log_converted(result)

    counted = Counter()
    query = MetricsFilter().with_namespace(counters.NAMESPACE)
    for counter in results[0].metrics().query(query)["counters"]:
        counted[counter.key.metric.name] += counter.committed
    lines = logged()
    for line in lines:
        check_line(line)
    last = lines[-1]
    assert last["event"] == "finished"
    assert counted == {name: last[name] for name in counted}
    assert counted == result.counts

    dataset = read_dataset(output)
    counts = {name: last[name] for name in ("rows_read", "rows_planned", "rows_rejected")}
    assert counts == {"rows_read": 9, "rows_planned": 5, "rows_rejected": 2}
    assert (last["rows_read"], last["examples_written"]) == (dataset.rows.read, dataset.examples)
    assert last["rows_duplicate"] == dataset.rows.duplicates == 1
    assert last["rows_dropped"] == dataset.rows.dropped == 1
    assert last["rows_rejected"] + last["payloads_rejected"] == dataset.rows.rejects == 3
    assert last["rejected"] == dataset.rows.rejected
    assert last["shard_bytes"] == dataset.bytes
    assert last["digest"] == dataset.digest
    progress = [line for line in lines if line["event"] == "progress"][-1]
    assert progress["payload_bytes"] == progress["planned_bytes"] == last["payload_bytes"] > 0


def test_documented_names():
    """docs/running.md explains each field and each count."""
    text = DOCS.read_text(encoding="utf-8")
    section = text[text.index("## Progress and logs") :].split("\n## ")[0]
    names = {*FIELDS, *EVERY_LINE, *(name for fields in FIELDS.values() for name in fields)}
    counts = {value for name, value in vars(counters).items() if name.startswith(COUNTS)}
    assert len(counts) == 11
    assert counts <= names
    assert {name for name in names if f"`{name}`" not in section} == set()


# --- the command ------------------------------------------------------------------------------


def test_every_line_on_stderr_is_json(mixed_source, tmp_path):
    """Events come in their order, each with exactly its fields; stdout has the result."""
    done = run_python(
        *("-m", "recordgen.cli", "convert", mixed_source, str(tmp_path / "out")),
        *("--log-format=json", "--json", "--max-reject-fraction=0.5"),
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    for line in lines:
        check_line(line)
    events = [line["event"] for line in lines]
    assert list(dict.fromkeys(events)) == [
        *("started", "detected", "planning", "planned", "progress", "warning", "finished")
    ]
    assert json.loads(done.stdout)["digest"] == lines[-1]["digest"]
    warned = [line["message"] for line in lines if line["event"] == "warning"]
    assert warned == list(map(as_flags, json.loads(done.stdout)["warnings"]))


def test_quiet_json_tells_of_no_progress(mixed_source, tmp_path):
    """With -q, only the start, warnings and the end are logged."""
    for args in (["check", mixed_source], ["convert", mixed_source, str(tmp_path), "--dry-run"]):
        done = recordgen(*args, "-q", "--log-format=json")
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        assert {line["event"] for line in lines} <= {"started", "warning", "finished"}
        assert lines[-1]["rows_planned"] == 6
        assert lines[-1]["exit_code"] == done.returncode == 1


# arguments; exit code; error; what its message names
WRONG = [
    (["--seed=x"], 2, "UsageError", "'x'"),
    (["--log-format=xml"], 2, "UsageError", "'xml'"),
    (["--", "--runner=Nope"], 2, "UsageError", "Nope"),
    ([], 1, "TooManyRejectsError", "rejected 1 of 1 row"),
]


@pytest.mark.parametrize(("args", "code", "error", "words"), WRONG, ids=lambda item: str(item)[:30])
def test_errors_are_json(args, code, error, words, make_csv, tmp_path):
    """The last line has the error's type and exit code, whatever fails."""
    bad = make_csv(["TRAIN,nowhere.jpg,cat"])
    done = recordgen("convert", bad, str(tmp_path / "out"), "--log-format=json", *args)
    assert (done.returncode, done.stdout) == (code, "")
    *_, last = map(json.loads, done.stderr.splitlines())
    assert (last["event"], last["error"], last["exit_code"]) == ("failed", error, code)
    assert words in last["message"]


def test_a_refusal_has_its_reason_and_command(tmp_path):
    """The last line has the reason by itself; the command is empty if no option reads the file."""
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY")
    done = recordgen("convert", str(tmp_path / "a.npy"), str(tmp_path / "out"), "--log-format=json")
    last = json.loads(done.stderr.splitlines()[-1])
    assert (last["exit_code"], last["error"], last["command"]) == (2, "NotUnderstoodError", [])
    assert "NumPy" in last["reason"]


@pytest.mark.slow
def test_ctrl_c_ends_with_130_and_commits_nothing(slow_source, out):
    """The last lines of the log say so, and how to go on."""
    code, errors = interrupt_convert(slow_source, out, "--log-format=json")
    assert code == 130
    *_, waiting, last = (json.loads(line) for line in errors.splitlines())
    assert (last["event"], last["exit_code"]) == ("interrupted", 130)
    assert "--resume" in waiting["message"]
    assert not (out / "dataset.json").exists()


def test_others_log_in_json_too():
    """Logs of libraries, warnings, errors of threads and of the program are lines of JSON."""
    code = (
        "import logging, threading, warnings\n"
        "from recordgen import logs\n"
        "logs.set_up('json', level=logging.INFO)\n"
        "logging.getLogger('library').info('one\\ntwo \\u2028 \\udc80')\n"
        "warnings.warn('careful')\n"
        "thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()\n"
        "raise KeyError('unforeseen')\n"
    )
    done = run_python("-c", code)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    seen = [(line["event"], line["level"], line["logger"]) for line in lines]
    assert seen == [
        ("log", "info", "library"),
        ("warning", "warning", "py.warnings"),
        ("warning", "error", "recordgen"),
        ("failed", "error", "recordgen"),
    ]
    assert lines[0]["message"] == "one\ntwo \u2028 \udc80"
    assert "UserWarning: careful" in lines[1]["message"]
    assert "ZeroDivisionError" in lines[2]["traceback"]
    assert (lines[3]["error"], done.returncode) == ("KeyError", 1)


def test_a_terminal_has_a_bar(mixed_source, tmp_path):
    """It shows planning, counted images and rejects; only the detection has a line of its own."""
    command = [sys.executable, "-m", "recordgen.cli", "convert", mixed_source, str(tmp_path / "o")]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*command, "--max-reject-fraction=0.5"],
        env=python_environment(TERM="xterm", COLUMNS="80"),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert "planning" in text
    assert re.search(r"5 of 6 images .* 3 rejects", text)
    # The detection, printed before the work begins; everything else belongs to the bar.
    assert re.findall(r"recordgen: (\w+)", text) == ["reading"]


# --- heartbeats and snapshots -----------------------------------------------------------------


def test_heartbeats_are_rare(tmp_path):
    """However often a worker counts, it writes every half second, in remote folders every ten."""
    for root in (str(tmp_path / "staging"), "memory://rare/staging"):
        folder = Staging(root)
        heartbeat = folder.planning_heartbeat()
        for _ in range(1000):
            heartbeat.add({counters.ROWS_READ: 10_000})
        assert not folder.read_heartbeats({}, ROW_FILES)
    assert (Heartbeat("/x").seconds, Heartbeat("gs://x/y").seconds) == (0.5, 10.0)


def test_heartbeats_never_end_a_run(tmp_path):
    """A folder that cannot be written costs the heartbeat only."""
    (tmp_path / "progress").write_text("a file where a folder should be")
    Staging(str(tmp_path), heartbeat_seconds=0).planning_heartbeat().add({counters.ROWS_READ: 1})


class Recorder:
    """Keeps the last snapshot of each phase."""

    def __init__(self, rows_read):
        self._rows_read = rows_read
        self.seen = {}
        self.all_read, self.is_writing = threading.Event(), threading.Event()

    def show(self, snapshot):
        self.seen[snapshot.phase] = snapshot
        if snapshot.count(counters.ROWS_READ) == self._rows_read:
            self.all_read.set()
        if snapshot.phase == counters.SHARDS:
            self.is_writing.set()

    def finished(self): ...


def test_rows_are_told_while_planning_and_images_after(tmp_path):
    """Snapshots count rows until there is a plan, then what is written."""
    folder = Staging(str(tmp_path / "staging"), heartbeat_seconds=0)
    folder.planning_heartbeat().add({"rows_planned": 7_000, "rows_rejected": 1})
    recorder = Recorder(rows_read=20_000)
    with watching(folder, recorder, "image"):
        step = SettleBuckets(None, folder)
        step.begin(Counter().update)
        step.count({"rows_read": 20_000, "rows_rejected": 10})
        assert recorder.all_read.wait(60)
        folder.write_plan(plan_of((), read=RowCounts(20_100), options=DECIDED), [])
        assert recorder.is_writing.wait(60)
    planned, written = (recorder.seen[each].counts for each in ("planning", "shards"))
    assert planned == {"rows_read": 20_000, "rows_planned": 7_000, "rows_rejected": 11}
    assert (written["rows_read"], written["rows_planned"]) == (20_100, 0)


def test_speed_and_time_left_count_from_the_first_poll():
    """Work before the first poll, such as of an earlier run, is not counted."""
    pace = Pace()

    def at(now, examples, size):
        counts = {counters.EXAMPLES_WRITTEN: examples, counters.PAYLOAD_BYTES: size}
        found = pace.added_to(Snapshot(seconds=now, counts=counts, planned_bytes=20_000), now)
        return found.examples_per_s, found.seconds_left

    assert at(100.0, 500, 5_000) == (None, None)
    assert at(100.1, 600, 10_000) == (None, None)
    assert at(110.0, 600, 10_000) == (10.0, 20.0)
    assert at(130.0, 800, 20_000) == (10.0, 0.0)
