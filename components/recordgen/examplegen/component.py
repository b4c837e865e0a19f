"""AutoMLExampleGen, a TFX component, and its specification."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tfx import types
from tfx.components.example_gen import component as example_gen_component
from tfx.components.example_gen import utils as example_gen
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto import example_gen_pb2, range_config_pb2
from tfx.types import component_spec, standard_artifacts
from tfx.types import standard_component_specs as specs

from recordgen.core.dataset.splits import NO_EVAL
from recordgen.errors import UsageError, check_names
from recordgen.examplegen import driver, executor
from recordgen.options import AUTO, OPTIONS, OptionValues, make_options, option_text

if TYPE_CHECKING:
    from typing_extensions import Unpack

_Parameter = component_spec.ExecutionParameter


class AutoMLExampleGenSpec(component_spec.ComponentSpec):
    """TFX's specification for file-based ExampleGens, with a typed parameter for each option."""

    PARAMETERS: ClassVar[dict[str, component_spec.ExecutionParameter]] = {
        **{
            key: value
            for key, value in specs.FileBasedExampleGenSpec.PARAMETERS.items()
            if key != specs.CUSTOM_CONFIG_KEY
        },
        # Unset means 80/10/10, or the names of the input splits.
        specs.OUTPUT_CONFIG_KEY: _Parameter(type=example_gen_pb2.Output, optional=True),
        driver.DATASET_VERSION_KEY: _Parameter(type=str, optional=True),
        driver.FINGERPRINT_IMAGES_KEY: _Parameter(type=int, optional=True),
        driver.DEFAULTS_KEY: _Parameter(type=str, optional=True),
        **{
            name: _Parameter(type=kind, optional=True) for name, kind in driver.OPTION_TYPES.items()
        },
    }
    INPUTS: ClassVar[dict[str, component_spec.ChannelParameter]] = {
        driver.PREVIOUS_KEY: component_spec.ChannelParameter(
            type=standard_artifacts.Examples, optional=True
        )
    }
    OUTPUTS = specs.FileBasedExampleGenSpec.OUTPUTS


class AutoMLExampleGen(example_gen_component.FileBasedExampleGen):
    """Turn AutoML import files into split, sharded TFRecords.

    ``input_base/import.csv``::

        TRAIN,images/1.jpg,cat
        VALIDATION,images/2.jpg,dog
        images/3.png,cat

    becomes an ``Examples`` artifact: ``Split-train`` with 1.jpg, ``Split-eval`` with 2.jpg, 3.png
    in an assigned split, each record with the features of :mod:`recordgen.features`; and, next to
    the splits, ``dataset.json``, ``labels.txt``, ``rejects.jsonl``, ``findings.jsonl`` and
    ``report.html``::

        example_gen = AutoMLExampleGen(input_base="gs://bucket/flowers")
        statistics_gen = tfx.components.StatisticsGen(examples=example_gen.outputs["examples"])

    Spans and versions (``{SPAN}``, ``{YYYY}-{MM}-{DD}``, ``{VERSION}`` in a pattern) work as in
    every file-based ExampleGen.

    Vertex AI Pipelines runs TFX's driver for file-based ExampleGens, not this component's driver;
    for ``fingerprint_images``, :func:`recordgen.examplegen.vertex_driver.use_in` replaces TFX's
    driver in the compiled job. TFX ignores ``with_platform_config`` there. Open-source Kubeflow
    Pipelines runs no driver: the executor resolves spans and versions; if images change without a
    new name, set ``dataset_version``.
    """

    SPEC_CLASS = AutoMLExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.AutoMLExampleGenExecutor)
    DRIVER_CLASS = driver.AutoMLExampleGenDriver

    def __init__(
        self,
        input_base: str | RuntimeParameter,
        *,
        input_config: example_gen_pb2.Input | RuntimeParameter | None = None,
        output_config: example_gen_pb2.Output | RuntimeParameter | None = None,
        range_config: range_config_pb2.RangeConfig | RuntimeParameter | None = None,
        previous: types.BaseChannel | None = None,
        dataset_version: str | RuntimeParameter | None = None,
        fingerprint_images: bool | RuntimeParameter = True,
        **options: Unpack[OptionValues],
    ) -> None:
        """Construct the component.

        Every parameter can be a ``RuntimeParameter``: the three configs are then JSON, of type str,
        and ``fingerprint_images`` is an int, 0 or 1.

        Args:
            input_base: folder or URL that contains the import files.
            input_config: input splits, each a name and a pattern of import files relative to
                ``input_base``, or a folder of images whose name ends with ``/``. Unset: ``*.csv``,
                one split. With several, rows without a split get the name of their input split.
            output_config: ``split_config.splits``: the shares (``hash_buckets``) of the splits for
                rows without a split; only for a single input split. Unset: train 80, eval 10,
                test 10. Empty: such rows get the name of their input split.
            range_config: the span to read (``static_range``); unset: the latest.
            previous: the Examples of earlier spans, usually a Resolver's: their labels keep their
                numbers, and new labels follow. With several artifacts, the newest span counts;
                without any, labels are numbered as usual. ``vocabulary`` does the same with one
                output or ``labels.txt``.
            dataset_version: your own name for this data, such as a date or a commit: part of the
                cache key, and a property of the artifact.
            fingerprint_images: add size and time (or generation, etag) of every image to the cache
                key. Before every run this lists folders of remote images, or looks each image up;
                if that takes too long, turn it off and set ``dataset_version``.
            **options: the fields of :class:`recordgen.options.ConvertOptions`; a list may be text
                with commas between its items. ``split`` and the shares of ``output_config``
                exclude each other. ``fail_on`` is ``NO_EVAL`` by default: TFX's Trainer and
                Evaluator fail without a split ``eval``, much later.

        Raises: UsageError: a value is not allowed (runtime parameters are checked in the run).
        """
        options.setdefault("fail_on", NO_EVAL)
        check_names(options, tuple(driver.OPTION_TYPES))
        # Only what is given, so that a version without an option runs pipelines that do not use it.
        given = _properties(options)
        # Check the values that are known now; runtime parameters are checked in the run.
        make_options(
            {n: value for n, value in given.items() if isinstance(value, int | float | str)}
        )
        if previous is not None and (given.get("vocabulary") or given.get("labels", AUTO) != AUTO):
            raise UsageError("previous already numbers the labels; omit vocabulary and labels")
        if input_config is None:
            input_config = example_gen.make_default_input_config(driver.DEFAULT_PATTERN)
        if isinstance(output_config, example_gen_pb2.Output):
            driver.split_fractions(output_config)
        if isinstance(input_config, example_gen_pb2.Input):
            known = output_config if isinstance(output_config, example_gen_pb2.Output) else None
            driver.check_splits(input_config, known)
        # A later version may have lost an option: it then ignores it at this default.
        defaults = _properties({name: OPTIONS[name].default for name in given})
        optional = {
            specs.OUTPUT_CONFIG_KEY: output_config,
            specs.RANGE_CONFIG_KEY: range_config,
            driver.DATASET_VERSION_KEY: dataset_version,
            **given,
            driver.DEFAULTS_KEY: json.dumps({**defaults, "fail_on": NO_EVAL}),
            driver.PREVIOUS_KEY: previous,
        }
        spec = AutoMLExampleGenSpec(
            input_base=input_base,
            input_config=input_config,
            output_data_format=example_gen_pb2.FORMAT_TF_EXAMPLE,
            output_file_format=example_gen_pb2.FORMAT_TFRECORDS_GZIP,
            fingerprint_images=_as_property(fingerprint_images, int),
            examples=types.Channel(type=standard_artifacts.Examples),
            **{key: value for key, value in optional.items() if value is not None},
        )
        # FileBasedExampleGen's constructor would build its own specification.
        base_beam_component.BaseBeamComponent.__init__(self, spec=spec)


def _properties(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for ML Metadata, which has no lists, no booleans, and no 1 as a float."""
    kinds = driver.OPTION_TYPES
    return {name: _as_property(option_text(name, x), kinds[name]) for name, x in options.items()}


def _as_property(value: Any, kind: type) -> Any:
    if isinstance(value, int):
        return kind(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(value) or None  # an empty list is unset
    return value
