"""The driver of AutoMLExampleGen: TFX's driver, with images in the fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx.components.example_gen import driver
from tfx.components.example_gen import utils as example_gen
from tfx.orchestration import data_types
from tfx.proto import example_gen_pb2
from tfx.types import standard_component_specs as specs
from tfx.utils import proto_utils

from recordgen.conversion.fingerprint import image_fingerprint
from recordgen.examplegen.parameters import (
    FINGERPRINT_IMAGES_KEY,
    folders_as_patterns,
    given_options,
    import_files,
    patterns_as_folders,
    span_errors,
)


class AutoMLExampleGenDriver(driver.FileBasedDriver):
    """Resolves span and version as TFX does, and adds the images to the fingerprint.

    TFX's local runner runs this driver. On Vertex AI Pipelines
    :mod:`recordgen.examplegen.vertex_driver` does the same; open-source Kubeflow Pipelines runs no
    driver.
    """

    def resolve_exec_properties(
        self,
        exec_properties: dict[str, Any],
        pipeline_info: data_types.PipelineInfo,
        component_info: data_types.ComponentInfo,
    ) -> dict[str, Any]:
        """Return the execution properties with ``span``, ``version`` and ``input_fingerprint``.

        Raises: as :func:`with_images`; SourceError also if no input matches the patterns.
        """
        given = exec_properties[specs.INPUT_CONFIG_KEY]
        exec_properties[specs.INPUT_CONFIG_KEY] = folders_as_patterns(given)
        with span_errors(exec_properties[specs.INPUT_BASE_KEY]):
            properties: dict[str, Any] = super().resolve_exec_properties(
                exec_properties, pipeline_info, component_info
            )
        properties[specs.INPUT_CONFIG_KEY] = patterns_as_folders(
            properties[specs.INPUT_CONFIG_KEY], given
        )
        key = example_gen.FINGERPRINT_PROPERTY_NAME
        properties[key] = with_images(properties[key], properties)
        return properties


def with_images(fingerprint: str, properties: Mapping[str, Any]) -> str:
    """Return TFX's fingerprint; add a fingerprint of images if ``fingerprint_images`` is set.

    ``properties`` are the execution properties, with span and version filled into ``input_config``.

    Raises: SourceError: an import file cannot be read; StorageError: storage failed.
    """
    if not properties.get(FINGERPRINT_IMAGES_KEY):
        return fingerprint
    input_config = proto_utils.json_to_proto(
        properties[specs.INPUT_CONFIG_KEY], example_gen_pb2.Input()
    )
    files = import_files(properties[specs.INPUT_BASE_KEY], input_config, None)
    return f"{fingerprint}\n{image_fingerprint(files, given_options(properties))}"
