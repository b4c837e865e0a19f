"""AutoMLExampleGen: the TFX component's parameters and specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tfx import types
from tfx.components.example_gen import component as example_gen_component
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto import example_gen_pb2, range_config_pb2
from tfx.types import component_spec, standard_artifacts
from tfx.types import standard_component_specs as specs

from recordgen.examplegen import driver, executor, parameters

_Parameter = component_spec.ExecutionParameter


class AutoMLExampleGenSpec(component_spec.ComponentSpec):
    """TFX's specification for file-based ExampleGens, with typed parameters.

    There is one for each option, instead of TFX's ``custom_config``.
    """

    PARAMETERS: ClassVar[dict[str, component_spec.ExecutionParameter]] = {
        **{
            key: value
            for key, value in specs.FileBasedExampleGenSpec.PARAMETERS.items()
            if key != specs.CUSTOM_CONFIG_KEY
        },
        # Unset is a value of its own: 80/10/10, or the input splits' names.
        specs.OUTPUT_CONFIG_KEY: _Parameter(type=example_gen_pb2.Output, optional=True),
        parameters.DATASET_VERSION_KEY: _Parameter(type=str, optional=True),
        parameters.FINGERPRINT_IMAGES_KEY: _Parameter(type=int, optional=True),
        **{
            name: _Parameter(type=kind, optional=True)
            for name, kind in parameters.OPTION_TYPES.items()
        },
    }
    INPUTS = specs.FileBasedExampleGenSpec.INPUTS
    OUTPUTS = specs.FileBasedExampleGenSpec.OUTPUTS


class AutoMLExampleGen(example_gen_component.FileBasedExampleGen):
    """Turn AutoML import files into split, sharded TFRecords.

    ``input_base/import.csv``::

        TRAIN,images/1.jpg,cat
        VALIDATION,images/2.jpg,dog
        images/3.png,cat

    becomes an ``Examples`` artifact: ``Split-train`` with 1.jpg, ``Split-eval`` with 2.jpg, 3.png
    in a split that is drawn, each record with the features of :mod:`recordgen.features`, and
    ``dataset.json``, ``labels.txt``, ``rejects.jsonl``, ``findings.jsonl`` and ``report.html``
    beside the splits::

        example_gen = AutoMLExampleGen(input_base="gs://bucket/flowers")
        statistics_gen = tfx.components.StatisticsGen(examples=example_gen.outputs["examples"])

    Spans and versions (``{SPAN}``, ``{YYYY}-{MM}-{DD}``, ``{VERSION}`` in a pattern) are those of
    every file-based ExampleGen.

    Vertex AI Pipelines runs TFX's driver for file-based ExampleGens instead of this component's:
    spans, versions and the import files' fingerprint work, and ``fingerprint_images`` does once
    :func:`recordgen.examplegen.vertex_driver.use_in` has put another driver into the compiled job.
    ``with_platform_config`` is ignored by TFX. Open-source Kubeflow Pipelines runs no driver: the
    executor resolves spans and versions itself. Where images change under their names there, set
    ``dataset_version``.
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
        dataset_version: str | RuntimeParameter | None = None,
        fingerprint_images: bool | RuntimeParameter = True,
        task: str | RuntimeParameter = "auto",
        input_format: str | RuntimeParameter = "auto",
        header: str | RuntimeParameter = "auto",
        columns: str | RuntimeParameter = "",
        schema: str | RuntimeParameter = "",
        seed: int | RuntimeParameter = 0,
        eval_from: str | RuntimeParameter = "",
        split_by: str | RuntimeParameter = "uri",
        missing_split: str | RuntimeParameter = "assign",
        labels: str | RuntimeParameter = "auto",
        shard_by: str | RuntimeParameter = "hash",
        shard_mb: float | RuntimeParameter = 128,
        compression: str | RuntimeParameter = "none",
        check: str | RuntimeParameter = "decode",
        max_side: int | RuntimeParameter | None = None,
        bad_boxes: str | RuntimeParameter = "clip",
        box_orientation: str | RuntimeParameter = "stored",
        split_column: str | RuntimeParameter = "",
        target_column: str | RuntimeParameter = "",
        weight_column: str | RuntimeParameter = "",
        prediction: str | RuntimeParameter = "auto",
        tfmd_schema: str | RuntimeParameter = "",
        max_image_mb: float | RuntimeParameter = 30,
        max_image_pixels: int | RuntimeParameter = 100_000_000,
        max_reject_fraction: float | RuntimeParameter = 0.01,
        allow_scheme: str | Sequence[str] | RuntimeParameter = (),
        allow_root: str | Sequence[str] | RuntimeParameter = (),
        threads: int | RuntimeParameter | None = None,
    ) -> None:
        """Construct the component.

        Every parameter can be a ``RuntimeParameter``: of type str for the three configs, which are
        JSON then, and int (0 or 1) for ``fingerprint_images``.

        Args:
            input_base: folder or URL below which the import files lie.
            input_config: input splits, each a name and a pattern of import files relative to
                ``input_base``, or a folder of images whose name ends with ``/``. Unset: ``*.csv``,
                one split. With several, an input split's name is the split of its rows that name
                none.
            output_config: ``split_config.splits``: the shares (``hash_buckets``) of the splits for
                rows that name none; for a single input split only. Unset: train 80, eval 10,
                test 10. Given and empty: as with several input splits.
            range_config: the span to read (``static_range``); unset: the latest.
            dataset_version: your own name for this data, such as a date or a commit. It is part of
                the cache key and stands on the artifact.
            fingerprint_images: put size and time (or generation, etag) of every image into the
                cache key. It asks storage about each image, in 32 threads, before every run; turn
                it off for millions of images far away and set ``dataset_version``.
            task: what rows mean: a name of :data:`recordgen.tasks.TASKS`, or ``auto``.
            input_format: ``csv``, ``jsonl``, ``folder``, ``iob`` or ``auto``.
            header: whether the first line of a CSV file names its columns: ``yes``, ``no`` or
                ``auto``.
            columns: which column holds what, such as ``path=image_id,label=source``; by name, or
                by number from 1.
            schema: what the columns of a table hold, as JSON: ``{"photo": "image"}``; see
                :class:`recordgen.tables.schema.Schema`.
            seed: decides order, shards and drawn splits.
            eval_from: move a share of a split to ``eval``: ``train:10`` moves 10 % of ``train``;
                empty: none.
            split_by: draw splits by ``uri`` or by ``content``.
            missing_split: ``assign`` or ``drop`` rows without a split.
            labels: ``auto``, ``text`` or ``integer``.
            shard_by: mix labels in shards (``hash``), or give each its own (``label``).
            shard_mb: aimed-at size of a shard in MB.
            compression: ``none`` or ``gzip``.
            check: ``decode``, ``header`` or ``none``.
            max_side: downscale images whose longer side is above this many pixels.
            bad_boxes: ``clip``, ``drop`` or ``reject`` boxes that are not within the image.
            box_orientation: boxes are of the picture as ``stored`` or of the ``upright`` one.
            split_column: of a table, the column of ML_USE; empty: told by its values.
            target_column: of a table, the column that is to be predicted; empty: none.
            weight_column: of a table, the column of weights, 0 to 10,000; empty: none.
            prediction: of a table, ``classification``, ``regression`` or ``auto``.
            tfmd_schema: of a table, a TensorFlow Metadata schema (pbtxt) with its columns' types;
                empty: told from all rows.
            max_image_mb: reject larger payloads, in MB.
            max_image_pixels: reject images of more pixels.
            max_reject_fraction: fail above this share of rejected rows, 0..1.
            allow_scheme: further schemes that rows may reach, such as ``https``: a list, or text
                with commas between them.
            allow_root: folders and URL prefixes, likewise; rows then reach nothing outside.
            threads: threads that fetch and check per worker.

        The options from ``task`` on are those of :class:`recordgen.options.ConvertOptions`.

        Raises:
            UsageError: a value is not allowed (runtime parameters are checked when they run).
        """
        options = {
            "task": task,
            "input_format": input_format,
            "header": header,
            "columns": columns,
            "schema": schema,
            "seed": seed,
            "eval_from": eval_from,
            "split_by": split_by,
            "missing_split": missing_split,
            "labels": labels,
            "shard_by": shard_by,
            "shard_mb": _as_float(shard_mb),
            "compression": compression,
            "check": check,
            "max_side": max_side,
            "bad_boxes": bad_boxes,
            "box_orientation": box_orientation,
            "split_column": split_column,
            "target_column": target_column,
            "weight_column": weight_column,
            "prediction": prediction,
            "tfmd_schema": tfmd_schema,
            "max_image_mb": _as_float(max_image_mb),
            "max_image_pixels": max_image_pixels,
            "max_reject_fraction": _as_float(max_reject_fraction),
            "allow_scheme": _as_text(allow_scheme),
            "allow_root": _as_text(allow_root),
            "threads": threads,
        }
        parameters.check_options(options)
        if input_config is None:
            input_config = parameters.default_input_config()
        if isinstance(output_config, example_gen_pb2.Output):
            parameters.split_fractions(output_config)
        if isinstance(input_config, example_gen_pb2.Input):
            known = output_config if isinstance(output_config, example_gen_pb2.Output) else None
            parameters.check_splits(input_config, known)
        if isinstance(fingerprint_images, bool):
            fingerprint_images = int(fingerprint_images)  # ML Metadata has no booleans
        optional = {
            specs.OUTPUT_CONFIG_KEY: output_config,
            specs.RANGE_CONFIG_KEY: range_config,
            parameters.DATASET_VERSION_KEY: dataset_version,
            **options,
        }
        spec = AutoMLExampleGenSpec(
            input_base=input_base,
            input_config=input_config,
            output_data_format=example_gen_pb2.FORMAT_TF_EXAMPLE,
            output_file_format=example_gen_pb2.FORMAT_TFRECORDS_GZIP,
            fingerprint_images=fingerprint_images,
            examples=types.Channel(type=standard_artifacts.Examples),
            **{key: value for key, value in optional.items() if value is not None},
        )
        # FileBasedExampleGen's own constructor builds its own specification: one class further up.
        base_beam_component.BaseBeamComponent.__init__(self, spec=spec)


def _as_float(value: float | RuntimeParameter) -> float | RuntimeParameter:
    return float(value) if isinstance(value, int) else value


def _as_text(value: str | Sequence[str] | RuntimeParameter) -> str | RuntimeParameter | None:
    """Put commas between values: ML Metadata has no lists. None at all: the parameter is unset."""
    return value if isinstance(value, str | RuntimeParameter) else ",".join(value) or None
