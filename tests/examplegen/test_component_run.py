"""AutoMLExampleGen on TFX's local runner, with real metadata, followed by TFX's own components."""

from pathlib import Path

import pytest
import tensorflow_data_validation as tfdv
from tfx import v1 as tfx

from pipelines.metadata import Metadata
from recordgen import features
from recordgen.core.dataset.manifest import read_dataset
from recordgen.errors import LintError, SourceError, TooManyRejectsError
from recordgen.examplegen import AutoMLExampleGen
from tests.examplegen.configs import input_config

ML_USES = ["TRAIN"] * 12 + ["VALIDATION"] * 6 + ["TEST"] * 6 + [""] * 6


@pytest.fixture(scope="module")
def rows():
    return [(use, f"images/{n}.png", "cat" if n % 3 else "dog") for n, use in enumerate(ML_USES)]


@pytest.fixture(scope="module")
def full_run(tmp_path_factory, write_import, run_tfx, rows):
    """One run with TFX's data components after ours; one row has a secret.

    Statistics are computed from raw pixels. The row names a server that no option allows.
    """
    root = tmp_path_factory.mktemp("full")
    path = write_import(root / "data/import.csv", rows)
    with path.open("a") as file:
        file.write("TRAIN,https://me:pl4nted@host/1.png?token=pl4nted,cat\n")
    given = {"max_reject_fraction": 0.1, "dataset_version": "spring", "seed": 3, "encode": "raw"}
    example_gen = AutoMLExampleGen(str(root / "data"), **given)
    examples = example_gen.outputs["examples"]
    options = tfdv.StatsOptions(feature_allowlist=list(features.STATISTICS_ALLOWLIST))
    statistics_gen = tfx.components.StatisticsGen(examples=examples, stats_options=options)
    statistics = statistics_gen.outputs["statistics"]
    schema_gen = tfx.components.SchemaGen(statistics=statistics)
    schema = schema_gen.outputs["schema"]
    validator = tfx.components.ExampleValidator(statistics=statistics, schema=schema)
    steps = (example_gen, statistics_gen, schema_gen, validator)
    metadata = run_tfx(root / "work", *steps)
    outputs = {}
    for execution in metadata.latest_run():
        assert execution.state == "COMPLETE"
        for artifact in metadata.outputs(execution):
            outputs.setdefault((execution.component, artifact.type), artifact)
    return outputs


@pytest.mark.slow
def test_no_artifact_holds_a_secret(full_run):
    """Neither files nor TFX's database have the password or token of a URL."""
    root = Path(full_run["AutoMLExampleGen", "Examples"].uri).parents[3]
    written = [path for path in root.rglob("*") if path.is_file()]
    assert root / "metadata.db" in written
    assert not [path for path in written if b"pl4nted" in path.read_bytes()]
    rejects = Path(full_run["AutoMLExampleGen", "Examples"].uri, "rejects.jsonl").read_text()
    assert '"uri": "https://host/1.png"' in rejects


@pytest.mark.slow
def test_properties_of_the_artifact_agree_with_its_files(full_run):
    """Counts, digests and versions are those of ``dataset.json``."""
    artifact = full_run["AutoMLExampleGen", "Examples"]
    dataset = read_dataset(artifact.uri)
    found = dict(artifact.properties)
    fingerprint = found.pop("input_fingerprint")
    assert fingerprint.startswith("split:single_split,num_files:1,")
    assert "\nimages:31,sha256:" in fingerprint
    assert found.pop("tfx_version")
    found.pop("is_external", None)
    for key in ("name", "pipeline_name", "producer_component", "state"):
        found.pop(key, None)
    about = ("labels_digest", "recordgen_version", "task", "seed")
    assert found == {
        "split_names": '["train", "eval", "test"]',
        "payload_format": "FORMAT_TF_EXAMPLE",
        "file_format": "tfrecords_gzip",
        "compression": "none",
        **{f"examples_{name}": split.examples for name, split in dataset.splits.items()},
        **{"span": 0, "examples": 30, "rows": 31, "rejects": 1, "label_count": 2},
        **dict.fromkeys(("duplicates", "merged", "dropped", "lint_errors"), 0),
        "lint_warnings": sum(dataset.lint.values()),
        "dataset_digest": dataset.digest,
        "dataset_version": "spring",
        **{name: getattr(dataset, name) for name in about},
    }
    assert (dataset.task, dataset.seed) == ("image_classification", 3)


def test_the_latest_version_of_the_latest_or_named_span_is_read(
    tmp_path, write_import, run_tfx, examples_of
):
    """Spans and versions are resolved as in TFX's own ExampleGens."""
    for span, version, count in ((1, 1, 2), (2, 1, 3), (2, 2, 4)):
        rows = [("TRAIN", f"{n}.png", "a") for n in range(count)]
        write_import(tmp_path / f"data/span-{span:02d}/v{version}/a.csv", rows)
    config = input_config(all="span-{SPAN:2}/v{VERSION}/*.csv")
    base = str(tmp_path / "data")

    newest = AutoMLExampleGen(base, input_config=config, fail_on="none")
    latest = examples_of(run_tfx(tmp_path / "work", newest))
    keys = ("span", "version", "examples")
    assert [latest.properties[key] for key in keys] == [2, 2, 4]

    span = tfx.proto.StaticRange(start_span_number=1, end_span_number=1)
    first = tfx.proto.RangeConfig(static_range=span)
    older = AutoMLExampleGen(base, input_config=config, range_config=first, fail_on="none")
    artifact = examples_of(run_tfx(tmp_path / "work", older))
    assert [artifact.properties[key] for key in keys] == [1, 1, 2]


def test_a_missing_span_fails_the_run(tmp_path, run_tfx):
    """The error names the pattern and the parameter."""
    component = AutoMLExampleGen(str(tmp_path), input_config=input_config(all="span-{SPAN}/*.csv"))
    with pytest.raises(SourceError, match=r"SPAN.*range_config"):
        run_tfx(tmp_path / "work", component)


def test_a_replaced_image_is_not_taken_from_the_cache(
    tmp_path, write_import, write_image, run_tfx, examples_of, rows
):
    """The fingerprint covers images, unless it is turned off."""
    write_import(tmp_path / "data/a.csv", rows)

    def run(**parameters):
        component = AutoMLExampleGen(str(tmp_path / "data"), **parameters)
        metadata = run_tfx(tmp_path / "work", component)
        [execution] = metadata.latest_run()
        return execution.state, examples_of(metadata).properties["dataset_digest"]

    def replace(number):
        write_image(tmp_path / "data/images/4.png", number)

    state, digest = run()
    assert state == "COMPLETE"
    assert run() == ("CACHED", digest)
    replace(1000)
    state, changed = run()
    assert state == "COMPLETE"
    assert changed != digest
    # Without fingerprints of images, only dataset_version reports a replaced image.
    assert run(fingerprint_images=False) == ("COMPLETE", changed)
    replace(2000)
    assert run(fingerprint_images=False) == ("CACHED", changed)
    state, newest = run(fingerprint_images=False, dataset_version="2")
    assert state == "COMPLETE"
    assert newest != changed


def test_too_many_rejects_fail_the_execution(tmp_path, write_import, run_tfx):
    """The error has the rejects, and TFX's store no artifact."""
    path = write_import(tmp_path / "data/a.csv", [("TRAIN", f"{n}.png", "a") for n in range(8)])
    for number in (3, 5):
        (tmp_path / f"data/{number}.png").write_bytes(b"this is no image")
    with pytest.raises(TooManyRejectsError) as caught:
        run_tfx(tmp_path / "work", AutoMLExampleGen(str(tmp_path / "data"), fail_on="none"))
    message = str(caught.value)
    assert "2 of 8 rows" in message
    for line, name in ((4, "3.png"), (6, "5.png")):
        found = [text for text in message.splitlines() if f"  {path}:{line}: " in text]
        assert found
        assert all(name in text for text in found)
    metadata = Metadata(str(tmp_path / "work/metadata.db"))
    [execution] = metadata.latest_run()
    assert execution.state == "FAILED"
    assert metadata.artifacts("Examples") == []


def test_rows_of_train_alone_fail_unless_a_share_becomes_eval(tmp_path, run_tfx, examples_of):
    """The plan of the rows fails, so no text is converted for a Trainer that cannot run."""
    (tmp_path / "data").mkdir()
    rows = (f"TRAIN,{number} is {label},{label}\n" for number in range(40) for label in "ab")
    (tmp_path / "data/a.csv").write_text("".join(rows))
    given = {"input_base": str(tmp_path / "data"), "task": "text_classification"}
    with pytest.raises(LintError, match=r"eval_from=train:10"):
        run_tfx(tmp_path / "work", AutoMLExampleGen(**given))
    [execution] = Metadata(str(tmp_path / "work/metadata.db")).latest_run()
    assert execution.state == "FAILED"
    found = run_tfx(tmp_path / "work", AutoMLExampleGen(**given, eval_from="train:20"))
    dataset = read_dataset(examples_of(found).uri)
    assert 0 < dataset.splits["eval"].examples < dataset.splits["train"].examples
    assert dataset.examples == 80
