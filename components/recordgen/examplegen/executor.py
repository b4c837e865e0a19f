"""The executor of AutoMLExampleGen: decode, convert, describe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner, DirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from tfx import types
from tfx.components.example_gen import utils as example_gen
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils
from tfx.types import standard_component_specs as specs

from recordgen.beam.beam_runner import BeamRunner
from recordgen.conversion.api import convert_files
from recordgen.conversion.summaries import log_converted
from recordgen.core.dataset.lint import dataset_numbers
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.flow.runner import LocalRunner
from recordgen.errors import SourceError
from recordgen.examplegen.driver import PREVIOUS_KEY, ExampleGenParameters

# TFX's only name for TFRecords, compressed or not: TFX detects compression by the suffix ``.gz``.
# With any other text, StatisticsGen and Transform fail. The custom property ``compression`` holds
# the real compression.
_FILE_FORMAT = "tfrecords_gzip"

# Beam's runners on this machine: for a worker process that died, they would wait forever.
_HERE = (FnApiRunner, DirectRunner, BundleBasedDirectRunner)


class AutoMLExampleGenExecutor(base_beam_executor.BaseBeamExecutor):
    """Converts AutoML import files to the Examples artifact.

    It does not extend ``BaseExampleGenExecutor``, which sends all image bytes through a Beam
    shuffle, compresses them, and takes split names only from the configuration.
    """

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Write the dataset to the artifact's uri and describe it on the artifact.

        Args:
            input_dict: ``previous``: the Examples of earlier spans, if any.
            output_dict: ``examples``: one Examples artifact.
            exec_properties: the component's parameters; a driver adds ``span``, ``version`` and
                ``input_fingerprint``.

        Raises:
            RecordgenError: a parameter is wrong, or the data give no dataset; the message shows the
                first rejects. (Vertex AI would ignore a failure in TFX's ``ExecutorOutput``.)
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        examples = artifact_utils.get_single_instance(output_dict[specs.EXAMPLES_KEY])
        parameters = ExampleGenParameters.from_exec_properties(exec_properties)
        if not parameters.files:
            raise SourceError(
                f"{exec_properties[specs.INPUT_BASE_KEY]}: no import file matches "
                f"{exec_properties[specs.INPUT_CONFIG_KEY]}; set input_base to the folder that "
                f"holds the import files, or change the pattern of input_config"
            )
        options = parameters.options
        if previous := input_dict.get(PREVIOUS_KEY):
            options = replace(options, vocabulary=newest(previous).uri)
        result = convert_files(parameters.files, examples.uri, options, new_runner=self.new_runner)
        describe(examples, result.dataset, parameters)
        log_converted(result)

    def new_runner(self) -> LocalRunner | BeamRunner:
        """Return this process as a runner in place of Beam's own runners on this machine."""
        pipeline = self._make_beam_pipeline()
        return LocalRunner() if isinstance(pipeline.runner, _HERE) else BeamRunner(pipeline)


def newest(examples: Iterable[types.Artifact]) -> types.Artifact:
    """Return the artifact with the latest span, then the latest version, then the last id."""
    return max(examples, key=lambda artifact: (artifact.span, artifact.version, artifact.id))


def describe(examples: types.Artifact, dataset: Dataset, parameters: ExampleGenParameters) -> None:
    """Describe ``dataset`` on its artifact.

    Properties: ``split_names``, ``span``, ``version``, for StatisticsGen. Custom properties: span
    and version again, for TFX's resolvers; formats, the input's fingerprint, counts, digest, seed
    and versions.
    """
    examples.split_names = artifact_utils.encode_split_names(list(dataset.splits))
    examples.span = parameters.span
    examples.set_int_custom_property(example_gen.SPAN_PROPERTY_NAME, parameters.span)
    if parameters.version is not None:
        examples.version = parameters.version
        examples.set_int_custom_property(example_gen.VERSION_PROPERTY_NAME, parameters.version)
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(examples, _FILE_FORMAT)

    texts = {
        example_gen.FINGERPRINT_PROPERTY_NAME: parameters.fingerprint,
        "compression": dataset.compression,
        "dataset_digest": dataset.digest,
        "labels_digest": dataset.labels_digest if dataset.labels else "",
        "dataset_version": parameters.dataset_version,
        "recordgen_version": dataset.recordgen_version,
        "task": dataset.task,
    }
    numbers = {
        **dataset_numbers(dataset),
        "seed": dataset.seed,
        **{f"examples_{name}": split.examples for name, split in dataset.splits.items()},
    }
    for key, text in texts.items():
        if text:
            examples.set_string_custom_property(key, text)
    for key, number in numbers.items():
        examples.set_int_custom_property(key, number)
