"""The driver of AutoMLExampleGen: TFX's driver, with images in the fingerprint.

It completes the execution properties of the component, which are decoded here into one frozen,
validated value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tfx.components.example_gen import driver, input_processor
from tfx.components.example_gen import utils as example_gen
from tfx.orchestration import data_types
from tfx.proto import example_gen_pb2, range_config_pb2
from tfx.types import standard_component_specs as specs
from tfx.utils import proto_utils

from recordgen import storage
from recordgen.conversion.fingerprint import image_fingerprint
from recordgen.core.dataset.splits import DEFAULT_FRACTIONS, SplitFractions, SplitRule, split_named
from recordgen.errors import SourceError, UsageError, check_gone
from recordgen.formats.import_file import ImportFile
from recordgen.options import OPTIONS, ConvertOptions, make_options, without_unset


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

        Raises: as :func:`with_images`.
        """
        return with_images(exec_properties)


def with_images(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return what :func:`resolved` does, with images if ``fingerprint_images`` is set.

    Raises: as :func:`resolved`; SourceError also if an import file cannot be read; StorageError:
        storage failed.
    """
    found = resolved(properties)
    if found.get(FINGERPRINT_IMAGES_KEY):
        files = import_files(found[specs.INPUT_BASE_KEY], _input_config(found), None)
        of_images = image_fingerprint(files, given_options(found))
        found[example_gen.FINGERPRINT_PROPERTY_NAME] += f"\n{of_images}"
    return found


# --- parameters ----------------------------------------------------------------------------------


DATASET_VERSION_KEY = "dataset_version"
PREVIOUS_KEY = "previous"
FINGERPRINT_IMAGES_KEY = "fingerprint_images"
DEFAULTS_KEY = "option_defaults"  # JSON: the given options' defaults when the pipeline was compiled
DEFAULT_PATTERN = "*.csv"

#: The execution properties that a driver finds.
FOUND = (
    example_gen.SPAN_PROPERTY_NAME,
    example_gen.VERSION_PROPERTY_NAME,
    example_gen.FINGERPRINT_PROPERTY_NAME,
)

#: The options, which are execution parameters, with their types.
OPTION_TYPES: Mapping[str, type] = {name: option.kind for name, option in OPTIONS.items()}


def split_fractions(output_config: example_gen_pb2.Output | None) -> SplitFractions | None:
    """Return the shares of splits for rows without one; None if the config has none.

    ``splits {name: "train" hash_buckets: 9} splits {name: "eval" hash_buckets: 1}`` → 9 : 1.

    Raises:
        UsageError: a split lacks name or buckets, or is repeated; or ``partition_feature_name`` is
            set.
    """
    if output_config is None or not output_config.split_config.splits:
        return None
    config = output_config.split_config
    if config.partition_feature_name:
        raise UsageError(
            f"output_config.split_config.partition_feature_name is not supported (got "
            f"{config.partition_feature_name!r}): rows are split before their images are read; "
            f"use group_by for a column of the import file, or group_by='content'"
        )
    names = tuple(split.name for split in config.splits)
    weights = tuple(split.hash_buckets for split in config.splits)
    if not all(names) or min(weights) < 1 or len(set(names)) < len(names):
        raise UsageError(
            f"output_config.split_config.splits must have distinct names and hash_buckets ≥ 1 "
            f"(got {dict(zip(names, weights, strict=True))})"
        )
    return SplitFractions(names, weights)


def check_splits(
    input_config: example_gen_pb2.Input, output_config: example_gen_pb2.Output | None
) -> None:
    """Check that the two configurations fit each other, as TFX's own ExampleGens do.

    Raises:
        UsageError: there is no input split, or one lacks name or pattern, or is repeated; or there
            are output splits for several input splits.
    """
    splits = input_config.splits
    names = [split.name for split in splits]
    if not splits or not all(s.name and s.pattern for s in splits) or len(set(names)) < len(names):
        raise UsageError(
            f"input_config.splits must have distinct names and a pattern each "
            f"(got {[(split.name, split.pattern) for split in splits]})"
        )
    if len(splits) > 1 and output_config is not None and output_config.split_config.splits:
        raise UsageError(
            f"output_config.split_config needs a single input split (got {names}): with several, "
            f"rows without a split get the name of their input split"
        )


def resolved(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the execution properties with ``span``, ``version`` and ``input_fingerprint``.

    TFX finds them; span and version are filled into the patterns of ``input_config``.

    Raises: SourceError: no input matches the span, date or version of the patterns.
    """
    input_base, config = properties[specs.INPUT_BASE_KEY], _input_config(properties)
    # TFX matches names, and no name ends with a slash: ``span-{SPAN}/`` → ``span-{SPAN}/*``. It
    # would find no span, or fail with "Glob pattern does not match regex pattern".
    matched = _input_config(properties).splits
    for split in matched:
        if split.pattern.endswith("/"):
            split.pattern += "*"
    range_config = _proto(properties, specs.RANGE_CONFIG_KEY, range_config_pb2.RangeConfig)
    try:
        processor = input_processor.FileBasedInputProcessor(input_base, matched, range_config)
        span, version = processor.resolve_span_and_version()
    except ValueError as exc:
        raise SourceError(
            f"{input_base}: {exc}; the patterns of input_config and range_config must match "
            f"existing files"
        ) from exc
    for split in config.splits:
        split.pattern = processor.get_pattern_for_span_version(split.pattern, span, version)
    found = (span, version, processor.get_input_fingerprint(span, version))
    filled = {specs.INPUT_CONFIG_KEY: proto_utils.proto_to_json(config)}
    return {**properties, **filled, **dict(zip(FOUND, found, strict=True))}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleGenParameters:
    """The parameters of one execution.

    Attributes:
        files: the import files, each with the default split of its rows.
        span: the span that was read; 0 without spans.
        version: the version that was read; None without versions.
        fingerprint: the driver's fingerprint of the input.
        dataset_version: the user's name for this data; empty if not set.
    """

    files: tuple[ImportFile, ...]
    options: ConvertOptions
    span: int
    version: int | None
    fingerprint: str
    dataset_version: str

    @classmethod
    def from_exec_properties(cls, properties: Mapping[str, Any]) -> ExampleGenParameters:
        """Decode TFX's execution properties.

        Usually a driver has filled numbers into the patterns and added ``span``, ``version`` and
        ``input_fingerprint``. Open-source Kubeflow Pipelines runs no driver: there they are
        resolved here, in the same way.

        Raises:
            UsageError: a value is not allowed.
            SourceError: no input matches the span, date or version of the patterns.
        """
        output_config = _proto(properties, specs.OUTPUT_CONFIG_KEY, example_gen_pb2.Output)
        check_splits(_input_config(properties), output_config)
        if properties.get(example_gen.SPAN_PROPERTY_NAME) is None:
            properties = resolved(properties)
        version = properties.get(example_gen.VERSION_PROPERTY_NAME)
        input_base, input_config = properties[specs.INPUT_BASE_KEY], _input_config(properties)
        options = given_options(properties)
        if (fractions := split_fractions(output_config)) is not None:
            if options.split.fractions != DEFAULT_FRACTIONS:
                raise UsageError(
                    f"output_config and split={options.split} both set the shares of the splits; "
                    f"give only one of them"
                )
            # Hash buckets are for rows without a split, whatever their file is called.
            options = replace(options, split=SplitRule(fractions, "no"))
        return cls(
            files=import_files(input_base, input_config, output_config),
            options=options,
            span=int(properties[example_gen.SPAN_PROPERTY_NAME]),
            version=None if version is None else int(version),
            fingerprint=properties.get(example_gen.FINGERPRINT_PROPERTY_NAME) or "",
            dataset_version=properties.get(DATASET_VERSION_KEY) or "",
        )


def given_options(properties: Mapping[str, Any]) -> ConvertOptions:
    """Return the options of an execution; rows only reach allowed files.

    Raises: UsageError: a value is not allowed, or its option has gone; see :func:`check_gone`.
    """
    defaults = json.loads(properties.get(DEFAULTS_KEY) or "{}")
    passed = {name: properties[name] for name in defaults if properties.get(name) is not None}
    check_gone(passed, OPTION_TYPES, defaults)
    # Vertex AI passes parameters as JSON, in which numbers are doubles.
    given = {
        name: kind(properties[name])
        for name, kind in OPTION_TYPES.items()
        if properties.get(name) is not None
    }
    return replace(make_options(without_unset(given, OPTIONS)), confined=True)


def import_files(
    input_base: str,
    input_config: example_gen_pb2.Input,
    output_config: example_gen_pb2.Output | None,
) -> tuple[ImportFile, ...]:
    """Return the import files of all input splits.

    With several input splits, or an empty ``output_config``, rows without a split get the name of
    their input split; else a split is assigned. Words of ML_USE mean the same as in a row: ``val``
    is ``eval``.
    """
    uses_names = len(input_config.splits) > 1 or (
        output_config is not None and not output_config.split_config.splits
    )
    return tuple(
        ImportFile(path, split_named(split.name) if uses_names else None)
        for split in input_config.splits
        for path in _matching(storage.join(input_base, split.pattern))
    )


def _matching(pattern: str) -> list[str]:
    """Return the matching import files; a pattern that ends with ``/`` is a folder."""
    return [pattern] if pattern.endswith("/") else storage.list_files(pattern)


def _input_config(properties: Mapping[str, Any]) -> example_gen_pb2.Input:
    given = _proto(properties, specs.INPUT_CONFIG_KEY, example_gen_pb2.Input)
    return example_gen.make_default_input_config(DEFAULT_PATTERN) if given is None else given


def _proto(properties: Mapping[str, Any], key: str, kind: type[Any]) -> Any:
    """Return the proto message whose JSON is under ``key``, or None."""
    text = properties.get(key)
    return proto_utils.json_to_proto(text, kind()) if text else None
