"""``create_span_pipeline``: the steps of :mod:`pipelines.spans`; it imports TFX."""

from __future__ import annotations

import tensorflow_model_analysis as tfma
from tfx import v1 as tfx
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.span_range_strategy import SpanRangeStrategy
from tfx.types.standard_artifacts import Examples, Model, ModelBlessing

from pipelines.config import PipelineConfig
from pipelines.pipeline import (
    eval_config,
    example_gen_of,
    fixed_inputs,
    pipeline_of,
    pusher_of,
    statistics_of,
)
from pipelines.spans import TOLERANCE
from recordgen.examplegen import AutoMLExampleGen


def create_span_pipeline(
    config: PipelineConfig, curated_schema: str, window: int
) -> tfx.dsl.Pipeline:
    """Build the pipeline; see :func:`pipelines.spans.run_span` for the arguments."""
    inputs = fixed_inputs(config)
    # Transform's examples have the same type and differ only in their producer.
    converted = tfx.dsl.Channel(type=Examples, producer_component_id=AutoMLExampleGen.__name__)
    earlier = Resolver(
        strategy_class=tfx.dsl.experimental.LatestArtifactStrategy, previous=converted
    ).with_id("earlier_examples")
    example_gen = example_gen_of(config, inputs, earlier.outputs["previous"])
    examples = example_gen.outputs["examples"]
    statistics_gen = statistics_of(config, examples)
    schema = tfx.components.ImportSchemaGen(curated_schema)
    example_validator = tfx.components.ExampleValidator(
        statistics=statistics_gen.outputs["statistics"], schema=schema.outputs["schema"]
    )
    rolling = tfx.proto.RangeConfig(rolling_range=tfx.proto.RollingRange(num_spans=window))
    last_spans = Resolver(
        strategy_class=SpanRangeStrategy, config={"range_config": rolling}, examples=converted
    ).with_id("last_spans")
    last_spans.add_upstream_node(example_gen)
    blessed = Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
        model=tfx.dsl.Channel(type=Model),
        model_blessing=tfx.dsl.Channel(type=ModelBlessing),
    ).with_id("last_blessed_model")
    trainer = tfx.components.Trainer(
        run_fn="recordgen.training.run_fn",
        examples=last_spans.outputs["examples"],
        base_model=blessed.outputs["model"],
        eval_args=tfx.proto.EvalArgs(),
        **inputs.trainer,
    )
    measured = eval_config(config.task, config.min_score)
    change = measured.metrics_specs[0].metrics[0].threshold.change_threshold
    change.direction = tfma.MetricDirection.HIGHER_IS_BETTER
    change.absolute.value = -TOLERANCE
    evaluator = tfx.components.Evaluator(
        examples=examples,
        model=trainer.outputs["model"],
        baseline_model=blessed.outputs["model"],
        eval_config=measured,
    )
    pusher = pusher_of(config, trainer, evaluator)
    steps = (earlier, example_gen, statistics_gen, schema, example_validator)
    return pipeline_of(config, [*steps, last_spans, blessed, trainer, evaluator, pusher])
