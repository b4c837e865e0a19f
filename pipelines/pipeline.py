"""``create_pipeline``: import files → examples → statistics, schema, checks → model → serving."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import tensorflow_data_validation as tfdv
import tensorflow_model_analysis as tfma
from google.protobuf import json_format
from tfx import v1 as tfx

from pipelines.config import PipelineConfig
from pipelines.parameters import output_config
from recordgen.examplegen import AutoMLExampleGen
from recordgen.examplegen.parameters import OPTION_TYPES
from recordgen.features import statistics_features
from recordgen.tables.schema import Schema
from recordgen.tasks import TASKS
from recordgen.training.config import EVALUATE, LABEL, SCORES, TRUTH, WEIGHT
from recordgen.training.measures import TfmaMetric


class RunInputs(NamedTuple):
    """Arguments of components that can differ between runs: values, or ``RuntimeParameter``s."""

    example_gen: Mapping[str, Any]
    trainer: Mapping[str, Any]
    evaluator: Mapping[str, Any]


def fixed_inputs(config: PipelineConfig) -> RunInputs:
    """Return the inputs of ``config``, the same in every run."""
    range_config = None
    if config.span is not None:
        span = tfx.proto.StaticRange(start_span_number=config.span, end_span_number=config.span)
        range_config = tfx.proto.RangeConfig(static_range=span)
    split = tfx.proto.Input.Split(name="import", pattern=config.pattern)
    shares = output_config(config.options.split_fractions)
    return RunInputs(
        example_gen={
            "input_base": config.input_base,
            "input_config": tfx.proto.Input(splits=[split]),
            "range_config": range_config,
            "dataset_version": config.dataset_version,
            "output_config": json_format.Parse(shares, tfx.proto.Output()),
        },
        trainer={
            "custom_config": config.training.to_custom_config(),
            # With zero steps, TFX's default, the training uses its number of epochs.
            "train_args": tfx.proto.TrainArgs(num_steps=config.train_steps or 0),
        },
        evaluator={"eval_config": eval_config(config.task, config.min_score)},
    )


def create_pipeline(config: PipelineConfig, inputs: RunInputs | None = None) -> tfx.dsl.Pipeline:
    """Build the pipeline of ``config``, with ``inputs`` if given.

    AutoMLExampleGen → StatisticsGen → SchemaGen → ExampleValidator, and AutoMLExampleGen →
    Trainer → Evaluator → Pusher: a model is pushed if its score on ``eval`` is at least
    ``min_score``.
    """
    inputs = inputs or fixed_inputs(config)
    example_gen = example_gen_of(config, inputs)
    examples = example_gen.outputs["examples"]
    statistics_gen = statistics_of(config, examples)
    statistics = statistics_gen.outputs["statistics"]
    schema_gen = tfx.components.SchemaGen(statistics=statistics)
    example_validator = tfx.components.ExampleValidator(
        statistics=statistics, schema=schema_gen.outputs["schema"]
    )
    trainer = tfx.components.Trainer(
        run_fn="recordgen.training.run_fn",
        examples=examples,
        eval_args=tfx.proto.EvalArgs(),
        **inputs.trainer,
    )
    model = trainer.outputs["model"]
    evaluator = tfx.components.Evaluator(examples=examples, model=model, **inputs.evaluator)
    pusher = pusher_of(config, trainer, evaluator)
    steps = [example_gen, statistics_gen, schema_gen, example_validator, trainer, evaluator, pusher]
    return pipeline_of(config, steps)


def example_gen_of(
    config: PipelineConfig, inputs: RunInputs, previous: tfx.dsl.Channel | None = None
) -> AutoMLExampleGen:
    """Return the conversion; labels of the examples in ``previous`` keep their numbers."""
    options = replace(config.options, task=config.task)
    return AutoMLExampleGen(
        previous=previous,
        fingerprint_images=config.fingerprint_images,
        **{name: getattr(options, name) for name in OPTION_TYPES} | dict(inputs.example_gen),
    )


def statistics_of(
    config: PipelineConfig, examples: tfx.dsl.Channel
) -> tfx.components.StatisticsGen:
    """Return the statistics of all features except payloads and unique names."""
    schema = config.options.schema
    declared = sorted(Schema.from_json(schema).table.features()) if schema else ()
    return tfx.components.StatisticsGen(
        examples=examples,
        stats_options=tfdv.StatsOptions(
            feature_allowlist=statistics_features(config.task, declared)
        ),
    )


def pusher_of(
    config: PipelineConfig, trainer: tfx.components.Trainer, evaluator: tfx.components.Evaluator
) -> tfx.components.Pusher:
    """Return the Pusher, which pushes a blessed model."""
    return tfx.components.Pusher(
        model=trainer.outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        push_destination=tfx.proto.PushDestination(
            filesystem=tfx.proto.PushDestination.Filesystem(base_directory=config.serving_dir)
        ),
    )


def pipeline_of(config: PipelineConfig, steps: Sequence[Any]) -> tfx.dsl.Pipeline:
    """Return a pipeline with these steps."""
    return tfx.dsl.Pipeline(
        pipeline_name=config.name,
        pipeline_root=config.pipeline_root,
        components=list(steps),
        enable_cache=True,
        metadata_connection_config=(
            tfx.orchestration.metadata.sqlite_metadata_connection_config(config.metadata_path)
            if config.metadata_path
            else None
        ),
        beam_pipeline_args=list(config.beam_args),
    )


def eval_config(task: str, min_score: float) -> tfma.EvalConfig:
    """Return the Evaluator's metrics, and the lowest score of a blessed model."""
    found: TfmaMetric = TASKS[task].declared("measure").tfma
    measure = tfma.MetricConfig(
        class_name=found.class_name, module=found.module, config=json.dumps({"name": found.name})
    )
    measure.threshold.value_threshold.lower_bound.value = min_score
    return tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(
                signature_name=EVALUATE,
                prediction_key=SCORES,
                # The label comes from TRUTH: TFMA fails if an example lacks a feature for it.
                preprocessing_function_names=[TRUTH],
                label_key=LABEL,
                example_weight_key=WEIGHT,
            )
        ],
        slicing_specs=[tfma.SlicingSpec()],
        metrics_specs=[
            tfma.MetricsSpec(
                metrics=[measure, tfma.MetricConfig(class_name="ExampleCount")],
            )
        ],
    )
