"""A conversion in parts gives the bytes of `convert`, whatever dies or is repeated."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import recordgen
from recordgen import cli, errors, parts
from recordgen.conversion.api import conversion_of
from recordgen.conversion.examination import examination_of
from recordgen.conversion.parts import options_of, saved, source_of
from recordgen.core.runs import lease
from recordgen.core.runs.commit import find_planned
from recordgen.core.runs.lease import PlannedParts, worker_lease
from recordgen.core.runs.staging import STAGING, Staging
from recordgen.options import OPTIONS, ConvertOptions
from tests import golden
from tests.conftest import tree_bytes
from tests.core.dataset.test_manifests import changed, changes
from tests.deaths import DEATHS, PROCESSES, Death, call_and_die, write_source
from tests.steps import OTHER_VALUES

# Twenty-four images make at least nine shards.
SMALL = {"shard_mb": 0.003, "seed": 3}
PARTS = 3


def plan(source, output, **settings):
    return parts.plan(str(source), output, PARTS, **{**SMALL, **settings})


def work_on_all(output):
    return [parts.work(output, part) for part in range(PARTS)]


def finish(output, expected):
    """Work on all parts, commit them, and compare the files; return the result."""
    work_on_all(output)
    result = parts.commit(output)
    assert tree_bytes(output) == expected
    return result


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return an import file that no test changes."""
    return write_source(tmp_path_factory.mktemp("source"), 24)[1]


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    """Return the files of a conversion in one process."""
    output = tmp_path_factory.mktemp("whole") / "out"
    recordgen.convert(source, output, **SMALL)
    return tree_bytes(output)


@pytest.fixture(scope="module")
def stages(source, tmp_path_factory):
    """Return an output with a plan, and a copy whose parts are all written."""
    folder = tmp_path_factory.mktemp("stages")
    plan(source, folder / "planned")
    work_on_all(shutil.copytree(folder / "planned", folder / "written"))
    return folder


@pytest.fixture
def planned(stages, tmp_path):
    """Return an output with a plan."""
    return shutil.copytree(stages / "planned", tmp_path / "out")


@pytest.fixture
def written(stages, tmp_path):
    """Return an output whose parts are all written."""
    return shutil.copytree(stages / "written", tmp_path / "out")


def test_a_scheduler_that_kills_and_repeats_workers(source, whole, out, monkeypatch):
    """One worker is killed amid its work, one runs twice at once, one is told its number."""
    plan(source, out)
    died = Death("recordgen.core.runs.staging.Staging.write_result", 2, after=False)
    call_and_die(died, "recordgen.parts.work", out, 1)
    twice = [PROCESSES.Process(target=parts.work, args=(out, 0)) for _ in range(2)]
    for process in twice:
        process.start()
    for process in twice:
        process.join(60)
    assert [process.exitcode for process in twice] == [0, 0]
    parts.work(out, 1)
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "2")
    parts.work(out)
    parts.commit(out)
    assert tree_bytes(out) == whole


def test_the_command_does_what_the_functions_do(source, whole, tmp_path, json_of, capsys, caplog):
    """Plan, work and commit print JSON, and refuse what is not there yet."""
    output = str(tmp_path / "out")
    options = ("--shard-mb", "0.003", "--seed", "3", "--parts", str(PARTS), "--json", "-q")
    shown = json_of("parts", "plan", source, output, *options)
    shards = sum(name.startswith("Split-") for name in whole)
    assert (shown["output"], shown["parts"], shown["shards"]) == (output, PARTS, shards)
    assert cli.main(["parts", "commit", output]) == 1
    assert cli.main(["parts", "work", output, str(PARTS)]) == 2
    capsys.readouterr()
    for part in map(str, range(PARTS)):
        assert cli.main(["parts", "work", output, part, "--json"]) == 0
    assert capsys.readouterr().out.count('"was_done": false') == PARTS
    assert caplog.text.count(": shard ") == shards
    digest = json_of("parts", "commit", output, "-q")["digest"]
    assert digest == json.loads(whole["dataset.json"])["digest"]
    assert tree_bytes(Path(output)) == whole


WORK = ["within the fourth shard", "between shard and result", "after five shards"]
# Points of a part, which has fewer shards than a whole run.
IN_PART = {name: DEATHS[name]._replace(call=2) for name in WORK} | {
    "before it is finished": Death("recordgen.core.runs.lease.finish_part", 1, after=False),
    "after it is finished": Death("recordgen.core.runs.lease.finish_part", 1, after=True),
}


@pytest.mark.parametrize("point", IN_PART)
def test_a_worker_that_dies_is_started_again(point, planned, whole):
    """The next one gives the same bytes, and keeps the shards that were finished."""
    call_and_die(IN_PART[point], "recordgen.parts.work", planned, 0)
    assert not (planned / "dataset.json").exists()
    before = {path.stat().st_ino for path in planned.glob(f"{STAGING}/*/Split-*/*")}
    finish(planned, whole)
    if point == "after five shards":
        assert len(before) == 2
        assert before < {path.stat().st_ino for path in planned.glob("Split-*/*")}


PLAN_DIES = {
    "while planning": DEATHS["while planning"],
    "before it is a plan": Death("recordgen.core.runs.lease.write_planned", 1, after=False),
    "when it is a plan": Death("recordgen.core.runs.lease.write_planned", 1, after=True),
}


@pytest.mark.parametrize("death", PLAN_DIES.values(), ids=PLAN_DIES)
def test_a_plan_that_dies_is_made_again(death, source, whole, out):
    """The plan that follows leads to the same bytes."""
    call_and_die(death, "recordgen.parts.plan", source, str(out), PARTS, **SMALL)
    plan(source, out, resume=True)
    finish(out, whole)


BEFORE = ("while planning", *WORK)  # a commit
COMMIT_DIES = {name: DEATHS[name] for name in DEATHS if name not in BEFORE} | {
    "after it is withdrawn": Death(
        "recordgen.core.runs.commit.withdraw", 1, after=True, is_finished=True
    )
}


@pytest.mark.parametrize("name", COMMIT_DIES)
def test_a_commit_that_dies_is_made_again(name, written, whole):
    """The dataset is whole or absent, and the next commit ends with the same bytes."""
    call_and_die(COMMIT_DIES[name], "recordgen.parts.commit", written)
    is_complete = COMMIT_DIES[name].is_finished
    assert (written / "dataset.json").exists() == is_complete
    result = parts.commit(written)
    assert (result.dataset, result.unchanged) == (recordgen.read_dataset(str(written)), is_complete)
    files = tree_bytes(written)
    assert {key: files[key] for key in files if not key.startswith(STAGING)} == whole


def test_a_repeated_commit(written, source, whole, stdout_of):
    """It changes nothing, and neither do late parts; another plan is work to do again."""
    first = parts.commit(written)
    before = tree_bytes(written)
    again = parts.commit(written)
    assert (again.dataset, again.unchanged) == (first.dataset, True)
    assert first.dataset.digest[:16] in stdout_of("parts", "commit", written)
    assert all(part.is_committed and part.was_done for part in work_on_all(written))
    assert cli.main(["parts", "work", str(written), "0"]) == 0
    assert tree_bytes(written) == before
    plan(source, written, overwrite=True)
    parts.work(written, 1)
    with pytest.raises(errors.RunnerError, match=r"2 of 3 parts .*: 0, 2;"):
        parts.commit(written)


def test_a_repeated_part_changes_nothing(written):
    """Not even a time of a file."""
    before = {path: path.stat().st_mtime_ns for path in written.rglob("*")}
    assert all(done.was_done for done in work_on_all(written))
    assert {path: path.stat().st_mtime_ns for path in written.rglob("*")} == before


def test_a_second_worker_that_is_late_leaves_nothing(planned, whole):
    """A commit need not wait for a part that two workers write."""
    lines = []

    def said(line):
        if not lines:
            work_on_all(planned)
            parts.commit(planned)
        lines.append(line)

    assert parts.work(planned, 0, said=said).is_committed
    assert len(lines) == 1
    assert tree_bytes(planned) == whole


def test_a_part_without_shards_needs_no_worker(source, tmp_path, out):
    """It counts as done, and the commit does not wait for it."""
    planned = parts.plan(source, out, 5)
    assert planned.shards < planned.parts == 5
    assert parts.work(out, 4).was_done
    for part in range(planned.shards):
        assert parts.work(out, part).shards == 1
    parts.commit(out)
    recordgen.convert(source, tmp_path / "expected")
    assert tree_bytes(out) == tree_bytes(tmp_path / "expected")


@pytest.mark.parametrize("part", [-1, PARTS, "x", "", None])
def test_a_part_that_is_not_there(part, planned, monkeypatch):
    """A number below, above or without the plan is refused."""
    monkeypatch.delenv("JOB_COMPLETION_INDEX", raising=False)
    with pytest.raises(errors.UsageError):
        parts.work(planned, part)


@pytest.mark.parametrize("number", [0, -1, "3"])
def test_a_number_of_parts_that_cannot_be(number, source, tmp_path):
    """The error quotes it."""
    with pytest.raises(errors.UsageError, match=re.escape(repr(number))):
        parts.plan(source, tmp_path / "out", number)


def test_without_a_plan_the_command_that_plans_is_named(tmp_path):
    """Workers and commits need one."""
    for function in (parts.commit, lambda output: parts.work(output, 0)):
        with pytest.raises(errors.RunnerError, match="recordgen parts plan"):
            function(tmp_path / "out")


def test_a_dataframe_has_no_parts(tmp_path):
    """Other processes do not have it."""
    frame = pd.DataFrame({"split": ["train"], "image_uri": ["a.jpg"], "label": ["cat"]})
    with pytest.raises(errors.UsageError, match="DataFrame"):
        parts.plan(frame, tmp_path / "out", 2)


def test_an_unusable_source_has_no_plan(tmp_path):
    """Only its rejects are left."""
    source = tmp_path / "labels.csv"
    source.write_text("TRAIN,nowhere.jpg,cat\n")
    with pytest.raises(errors.TooManyRejectsError):
        parts.plan(str(source), tmp_path / "out", 2)
    assert os.listdir(tmp_path / "out") == ["rejects.jsonl"]


def test_another_version_is_refused(written):
    """The error names the version that planned."""
    [path] = written.glob(f"{STAGING}/*/parts.json")
    values = json.loads(path.read_text())
    values["made_by"][0] = "0.0.1"
    path.write_text(json.dumps({**values, "later": 1}))
    for function in (parts.commit, lambda output: parts.work(output, 0)):
        with pytest.raises(errors.RunnerError, match=r"0\.0\.1"):
            function(written)


# What a file may hold that nobody changed in one place.
WHOLE = [b"", b"x", b"[]", b"{}", b"null", b"[" * 5000, b"\xff\xfe", b'"\\ud800"']


@pytest.mark.parametrize("name", ["parts.json", "plan.json"])
@pytest.mark.parametrize("door", ["work", "commit"])
def test_a_plan_that_was_changed_is_refused(door, name, request):
    """Each place with some odd values, and whole files: the error names the file."""
    output = request.getfixturevalue("planned" if door == "work" else "written")
    [path] = output.glob(f"{STAGING}/*/{name}")
    values = json.loads(path.read_text())
    others = [json.dumps(changed(values, *change)).encode() for change in changes(values)]
    for content in [*WHOLE, *others[::5]]:
        if content == json.dumps(values).encode():
            continue
        path.write_bytes(content)
        with pytest.raises(errors.RecordgenError, match=re.escape(name)):
            parts.work(output, 0) if door == "work" else parts.commit(output)
    path.unlink()
    with pytest.raises(errors.RecordgenError):
        parts.work(output, 0) if door == "work" else parts.commit(output)


def test_a_result_that_was_changed_is_named(written):
    """A changed result of a shard is an error that names its file, or the same as before."""
    staging = find_planned(str(written))
    [path] = written.glob(f"{STAGING}/*/results/train-00000.result")
    line, rest = path.read_bytes().split(b"\n", 1)
    values = json.loads(line)
    others = [json.dumps(changed(values, *change)).encode() for change in changes(values)]
    refusals = []
    for content in [*WHOLE, *others]:
        path.write_bytes(content + b"\n" + rest)
        try:
            staging.read_results()
        except errors.RunnerError as exc:
            refusals.append(str(exc))
    assert len(refusals) > len(others) // 2
    assert all(text.startswith(f"{path}: ") for text in refusals)
    outside = changed(values, ("shard", "file"), "../../x/data_tfrecord-00000-of-00001")
    path.write_bytes(json.dumps(outside).encode() + b"\n" + rest)
    with pytest.raises(errors.RunnerError, match="x/data_tfrecord"):
        parts.commit(written)


# What happens to a file of a run: the last has names of columns that are no UTF-8.
DAMAGES = (
    *(lambda _: b"", lambda it: it[: len(it) // 2], lambda it: it[::-1] + b"."),
    lambda it: it.replace(b"perceptual_hash", b"perceptual_\x93ash") + b".",
)


@pytest.mark.parametrize("kind", ["between", "results", "Split-train"])
def test_files_of_a_run_that_were_changed_are_an_error(kind, request):
    """Damaged rows or shards of a plan stop a worker, damaged results and shards the commit."""
    output = request.getfixturevalue("planned" if kind == "between" else "written")
    whole = {path: path.read_bytes() for path in output.glob(f"{STAGING}/*/{kind}/*")}
    assert whole
    for damage in DAMAGES:
        for path, data in whole.items():
            path.write_bytes(damage(data))
        with pytest.raises(errors.RecordgenError):
            parts.work(output, 0) if kind == "between" else parts.commit(output)


def test_a_source_that_changes_needs_another_plan(tmp_path, out):
    """What stays the same is kept, and the result is what `convert` makes of the new source."""
    (tmp_path / "images").mkdir()
    images, source = write_source(tmp_path / "images", 24)
    plan(source, out)
    parts.work(out, 0)
    with open(source, "a") as file:
        file.write(f"{images[0]},dog\n")
    with pytest.raises(errors.SourceError, match=f"^{source}: .*resume=True"):
        parts.work(out, 1)
    plan(source, out, resume=True, max_reject_fraction=0.5)
    recordgen.convert(source, tmp_path / "expected", max_reject_fraction=0.5, **SMALL)
    assert finish(out, tree_bytes(tmp_path / "expected")).kept_shards is not None


def test_a_worker_in_another_folder(source, tmp_path, monkeypatch):
    """A path that leads nowhere there would reject all images of the part."""
    monkeypatch.chdir(Path(source).parent)
    plan("labels.csv", tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.SourceError, match=r"labels\.csv"):
        parts.work(tmp_path / "out", 0)


def test_an_output_that_is_mounted_elsewhere(planned, tmp_path, whole):
    """Paths of the output are relative to it."""
    finish(planned.rename(tmp_path / "elsewhere"), whole)


# --- other runs on the output --------------------------------------------------------------------


def test_another_run_does_not_remove_a_plan(planned, source, whole):
    """Conversions, plans and writes are refused."""
    for more in ({}, {"overwrite": True}):
        with pytest.raises(errors.OutputBusyError, match=f"^{planned}: "):
            recordgen.convert(source, planned, **SMALL, **more)
        with pytest.raises(errors.OutputBusyError, match=f"^{planned}: "):
            plan(source, planned, **more)
    with pytest.raises(errors.OutputBusyError, match=f"^{planned}: "):
        recordgen.write([{"x": 1}], planned)
    finish(planned, whole)


def test_a_run_takes_over_the_shards_of_a_plan(planned, source, whole):
    """Finished shards of parts are kept."""
    shards = parts.work(planned, 0).shards
    assert recordgen.convert(source, planned, resume=True, **SMALL).kept_shards == shards
    assert tree_bytes(planned) == whole


def test_a_plan_takes_over_the_shards_of_a_run(source, whole, out):
    """Finished shards of a killed run are kept."""
    call_and_die(DEATHS["after five shards"], "recordgen.convert", source, str(out), **SMALL)
    plan(source, out, resume=True)
    assert finish(out, whole).kept_shards == 5


@pytest.mark.parametrize("name", ["worker", "commit"])
def test_nobody_takes_over_from_a_process_that_is_alive(name, planned, source):
    """A living worker or commit is named by its number."""
    staging = find_planned(str(planned))
    path = worker_lease(staging, 1) if name == "worker" else staging.lease
    with lease.held(path), pytest.raises(errors.OutputBusyError, match=str(os.getpid())):
        recordgen.convert(source, planned, resume=True, **SMALL)
    if name == "commit":
        with lease.held(path), pytest.raises(errors.OutputBusyError, match=str(os.getpid())):
            parts.commit(planned)
    recordgen.convert(source, planned, resume=True, **SMALL)


def test_a_process_that_lost_its_lease_leaves_it_to_the_winner(tmp_path):
    """It neither goes on nor removes the lease."""
    path, winner = str(tmp_path / "run.json"), replace(lease.this_process(), host="elsewhere")
    with lease.held(path):
        lease.write_holder(path, winner)
        with pytest.raises(errors.RunnerError):
            lease.check_held(path)
    assert lease.read_holder(path) == winner


def test_the_old_dataset_stays_until_the_commit(source, whole, out):
    """Plan and workers change nothing that can be read."""
    recordgen.convert(source, out, seed=4)
    before = tree_bytes(out)
    with pytest.raises(errors.OutputExistsError):
        plan(source, out)
    assert tree_bytes(out) == before
    plan(source, out, overwrite=True)
    work_on_all(out)
    files = tree_bytes(out)
    assert {key: files[key] for key in files if not key.startswith(STAGING)} == before
    parts.commit(out)
    assert tree_bytes(out) == whole


@pytest.mark.parametrize("name", golden.SAMPLES)
def test_each_task_has_the_bytes_of_ever(name, tmp_path):
    """The plan keeps all that workers and commit need to know of a task."""

    def convert(source, output):
        options = {"seed": 0, "shard_mb": 128, **golden.NEEDED.get(name, {})}
        plan(source, output, **options)
        work_on_all(output)
        parts.commit(output)

    expected = json.loads(golden.DIGESTS.read_text())[name]
    assert golden.digests(name, tmp_path / "case", convert) == expected


@pytest.mark.parametrize("there", [True, False])
def test_appending_in_parts(there, source, tmp_path):
    """The bytes are those of a run that appends, with and without an old dataset."""
    first = tmp_path / "first.csv"
    first.write_text("".join(Path(source).read_text().splitlines(keepends=True)[:9]))
    outputs = [tmp_path / name for name in ("out", "expected")]
    for output in outputs if there else ():
        recordgen.convert(str(first), output, **SMALL)
    plan(source, outputs[0], append=True)
    recordgen.convert(source, outputs[1], append=True, **SMALL)
    finish(outputs[0], tree_bytes(outputs[1]))


def test_appending_to_a_dataset_that_changes(source, tmp_path):
    """The commit is refused and says how to go on."""
    first, output = tmp_path / "first.csv", tmp_path / "out"
    first.write_text("".join(Path(source).read_text().splitlines(keepends=True)[:9]))
    recordgen.convert(str(first), output, **SMALL)
    plan(source, output, append=True)
    work_on_all(output)
    values = json.loads((output / "dataset.json").read_text())
    (output / "dataset.json").write_text(json.dumps({**values, "digest": "0" * 64}))
    with pytest.raises(errors.RunnerError, match=f"^{output}: .*append=True resume=True"):
        parts.commit(output)


# --- what the plan keeps -------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIONS)
def test_the_plan_keeps_each_option(name):
    """Workers and commits get the options that were given."""
    needed = {"resize": {"image_size": "8x8"}, "task": {"schema": OTHER_VALUES["schema"]}}
    value = OTHER_VALUES[name]
    given = {name: tuple(value) if isinstance(value, list) else value, **needed.get(name, {})}
    options = ConvertOptions(**given, confined=True, table='{"columns": []}')
    assert options_of(planned_parts(options)) == options


def planned_parts(options):
    """Return the plan of no import files, as it is read."""
    values = json.loads(json.dumps(saved(options)))
    return PlannedParts(parts=1, shards=1, options=values, sources={}, keypoints={}, base=None)


@pytest.mark.parametrize(("examples", "batches"), [(1000, 1), (10_000_000, 125)])
def test_a_commit_checks_a_large_dataset_in_batches(examples, batches, tmp_path):
    """No more than 80,000 examples and the rest of their shard are in memory together."""
    options = ConvertOptions(task="image_classification")
    source = source_of(planned_parts(options), options, examples)
    staging, conversion = Staging(str(tmp_path)), conversion_of(options)
    assert examination_of(source, conversion, options.selection, staging).batches == batches


def test_beam_plans_the_same(source, whole, out):
    """The plan of a runner has the same shards."""
    plan(source, out, beam_args=["--direct_num_workers=2"])
    finish(out, whole)
