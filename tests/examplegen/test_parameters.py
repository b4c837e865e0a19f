from contextlib import nullcontext
from dataclasses import replace

import pytest
from tfx import v1 as tfx
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto import example_gen_pb2
from tfx.types import standard_artifacts
from tfx.utils import proto_utils

from pipelines.pipeline import LOCAL_BEAM_ARGS
from recordgen.beam.beam_runner import BeamRunner
from recordgen.core.dataset.splits import DEFAULT_FRACTIONS, SplitFractions
from recordgen.core.flow.runner import LocalRunner
from recordgen.errors import UsageError
from recordgen.examplegen import AutoMLExampleGen
from recordgen.examplegen.driver import OPTION_TYPES, ExampleGenParameters
from recordgen.examplegen.executor import AutoMLExampleGenExecutor, newest
from recordgen.formats.import_file import ImportFile
from recordgen.options import OPTIONS, make_options
from tests.examplegen.configs import input_config, output_config
from tests.steps import OTHER_VALUES


def properties(base, inputs, **more):
    return {"input_base": str(base), "input_config": proto_utils.proto_to_json(inputs), **more}


def test_every_option_is_a_parameter():
    """Each option has a parameter, and only what is given reaches the execution."""
    assert AutoMLExampleGen.__init__.__annotations__["options"] == "Unpack[OptionValues]"
    assert set(OPTIONS) == set(OPTION_TYPES)
    component = AutoMLExampleGen("data", seed=3)
    given = {n: v for n, v in component.spec.exec_properties.items() if n in OPTIONS}
    assert given == {"fail_on": "NO_EVAL", "seed": 3}


def test_options_reach_the_executor(tmp_path):
    """Each option arrives at the executor as it was given."""
    # The others cannot be combined with labels=text, or with each other.
    others = ("layout", "columns", "vocabulary", "image_size", "resize", "group_by", "stratify")
    given = {name: value for name, value in OTHER_VALUES.items() if name not in others}
    for decided in (
        {},
        {"group_by": "patient"},
        {"stratify": "label", "labels": "auto", "vocabulary": "labels.txt"},
        {"image_size": "64max", "resize": "stretch"},
    ):
        options = {**given, **decided}
        component = AutoMLExampleGen(str(tmp_path), dataset_version="v7", **options)
        decoded = ExampleGenParameters.from_exec_properties(component.spec.exec_properties)
        assert decoded.options == replace(make_options(options), confined=True)
        assert decoded.dataset_version == "v7"


def test_an_option_that_went_is_ignored_at_its_default(tmp_path, monkeypatch):
    """An error otherwise; unset is no value."""
    with monkeypatch.context() as earlier:
        earlier.setitem(OPTIONS, "threads", replace(OPTIONS["threads"], default=5))
        made = [AutoMLExampleGen(str(tmp_path), threads=number) for number in (5, 6)]
    for component, error in zip(made, (nullcontext(), pytest.raises(UsageError)), strict=True):
        given = {**component.spec.exec_properties, "span": 0}
        given["went"] = given.pop("threads")
        given["option_defaults"] = given["option_defaults"].replace("threads", "went")
        ExampleGenParameters.from_exec_properties({**given, "went": None})
        with error:
            ExampleGenParameters.from_exec_properties(given)


def test_whole_numbers_may_arrive_as_doubles(tmp_path):
    """Vertex AI passes numbers as JSON."""
    numbers = {"span": 3.0, "version": 2.0, "seed": 5.0, "threads": 3.0}
    given = properties(tmp_path, input_config(one="*.csv"), **numbers)
    decoded = ExampleGenParameters.from_exec_properties(given)
    assert (decoded.span, decoded.version) == (3, 2)
    assert repr(decoded.options.seed) == "5"
    assert repr(decoded.options.threads) == "3"


# input splits, output config, default splits of the import files
SPLITS = [
    (dict(one="a.csv"), None, [None]),
    (dict(one="a.csv"), output_config(train=1, eval=1), [None]),
    (dict(eval="a.csv"), output_config(), ["eval"]),
    (dict(train="a.csv", eval="b.csv"), None, ["train", "eval"]),
    (dict(Training="a.csv", val="b.csv"), None, ["train", "eval"]),
    (dict(mine="a.csv", unassigned="b.csv"), None, ["mine", "unassigned"]),
    (dict(train="*.csv"), None, [None, None]),
]


@pytest.mark.parametrize(("inputs", "outputs", "expected"), SPLITS)
def test_splits_of_import_files(tmp_path, inputs, outputs, expected):
    """Several input splits, or an empty output, name the split of their rows."""
    (tmp_path / "a.csv").touch()
    (tmp_path / "b.csv").touch()
    given = properties(tmp_path, input_config(**inputs))
    if outputs is not None:
        given["output_config"] = proto_utils.proto_to_json(outputs) or "{}"
    decoded = ExampleGenParameters.from_exec_properties(given)
    paths = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    files = zip(paths, expected, strict=False)
    assert decoded.files == tuple(ImportFile(path, split) for path, split in files)


@pytest.mark.parametrize(("outputs", "from_name"), [(None, "auto"), (dict(train=1, eval=1), "no")])
def test_hash_buckets_are_stronger_than_a_name(tmp_path, outputs, from_name):
    """Shares that are given decide, whatever a file is called."""
    (tmp_path / "train.csv").touch()
    given = properties(tmp_path, input_config(one="*.csv"))
    if outputs is not None:
        given["output_config"] = proto_utils.proto_to_json(output_config(**outputs))
    decoded = ExampleGenParameters.from_exec_properties(given)
    assert decoded.options.split.names == from_name
    expected = DEFAULT_FRACTIONS if outputs is None else SplitFractions(("train", "eval"), (1, 1))
    assert decoded.options.split.fractions == expected


def test_without_driver_spans_are_resolved(tmp_path):
    """The executor finds the newest span and its fingerprint."""
    for name in ("span-1/a.csv", "span-12/a.csv", "span-3/a.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    given = properties(tmp_path, input_config(one="span-{SPAN}/*.csv"))
    decoded = ExampleGenParameters.from_exec_properties(given)
    assert (decoded.span, decoded.version) == (12, None)
    assert decoded.files == (ImportFile(str(tmp_path / "span-12/a.csv")),)
    assert decoded.fingerprint.startswith("split:one,num_files:1,")


TWO_SPLITS, BY_FEATURE = input_config(a="a", b="b"), output_config(train=1)
EARLIER = tfx.dsl.Channel(type=standard_artifacts.Examples)
BY_FEATURE.split_config.partition_feature_name = "image/source_id"

# parameters, what the error names
WRONG = [
    (dict(check="some"), "check"),
    (dict(shard_by="class"), "shard_by"),
    (dict(shard_mb=0), "shard_mb"),
    (dict(max_reject_fraction=2), "max_reject_fraction"),
    (dict(output_config=output_config(train=0)), "hash_buckets"),
    (dict(input_config=TWO_SPLITS, output_config=output_config(train=1)), "input split"),
    (dict(input_config=example_gen_pb2.Input()), "names .*pattern"),
    (dict(output_config=BY_FEATURE), "partition_feature_name"),
    (dict(image_sizes=3), r"'image_sizes'.*'image_size'"),
    # An earlier span and a vocabulary would both number the labels.
    (dict(previous=EARLIER, vocabulary="labels.txt"), "vocabulary"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_values_fail_where_the_pipeline_is_defined(wrong, message):
    """No run has to start to find them."""
    with pytest.raises(UsageError, match=message):
        AutoMLExampleGen("data", **wrong)


def test_runtime_parameters_pass_the_checks_of_the_definition():
    """They are checked in the run."""
    component = AutoMLExampleGen(
        RuntimeParameter("base", ptype=str),
        seed=RuntimeParameter("seed", ptype=int),
        shard_mb=RuntimeParameter("shard_mb", ptype=float),
        dataset_version=RuntimeParameter("version", ptype=str),
        fingerprint_images=RuntimeParameter("look", ptype=int),
    )
    assert component.spec.exec_properties["seed"].name == "seed"
    assert component.spec.exec_properties["shard_mb"].ptype is float


# flags, runner
FLAGS = [
    ([], LocalRunner),
    (["--direct_running_mode=multi_processing", "--direct_num_workers=2"], LocalRunner),
    ([*LOCAL_BEAM_ARGS], LocalRunner),
    (["--runner=PortableRunner", "--job_endpoint=embed"], BeamRunner),
]


@pytest.mark.parametrize(("flags", "runner"), FLAGS)
def test_a_conversion_on_this_machine_needs_no_runner_of_beam(flags, runner, tmp_path):
    """Flags of a whole pipeline may be for its other components."""
    context = AutoMLExampleGenExecutor.Context(beam_pipeline_args=flags, tmp_dir=str(tmp_path))
    assert isinstance(AutoMLExampleGenExecutor(context).new_runner(), runner)


def test_the_newest_span_gives_the_labels():
    """Of equal spans, the latest version counts."""
    found = []
    for number, (span, version) in enumerate([(2, 1), (10, 1), (10, 3), (9, 7)]):
        artifact = standard_artifacts.Examples()
        artifact.span, artifact.version, artifact.id = span, version, number
        found.append(artifact)
    assert newest(found) is found[2]
