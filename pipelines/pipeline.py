"""The TFX pipeline: import files → examples → statistics, schema, checks → model → serving.

:func:`create_pipeline` is its one definition, for this machine, for Vertex AI and for new spans.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow_data_validation as tfdv
import tensorflow_model_analysis as tfma
from tfx import v1 as tfx
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.span_range_strategy import SpanRangeStrategy
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types.standard_artifacts import Examples, Model, ModelBlessing

from pipelines.metadata import metadata_path
from pipelines.settings import Settings
from recordgen.core.dataset.splits import NO_EVAL
from recordgen.examplegen import AutoMLExampleGen
from recordgen.examplegen.driver import OPTION_TYPES
from recordgen.features import statistics_features
from recordgen.options import OPTIONS, make_options
from recordgen.tasks import TASKS
from recordgen.training.config import EVALUATE, LABEL, SCORES, TRUTH, WEIGHT
from recordgen.training.measures import TfmaMetric
from recordgen.training.tfx_trainer import Trainer

# Not "DirectRunner", for which newer Beams may download Prism. One process: for small data, further
# processes take longer to start than they save.
LOCAL_BEAM_ARGS = (
    "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner",
    "--direct_running_mode=in_memory",
    "--direct_num_workers=1",
    # Without an image, TFX packs its sources for remote workers at the start of each Beam step,
    # which takes seconds. No container is started.
    "--sdk_container_image=none",
)

#: Accepted loss of score, compared with the last blessed model.
TOLERANCE = 0.01


def create_pipeline(
    name: str,
    root: str,
    example_gen: AutoMLExampleGen,
    *,
    custom_config: Mapping[str, Any] | RuntimeParameter,
    eval_config: tfma.EvalConfig | RuntimeParameter,
    serving_dir: str,
    train_args: tfx.proto.TrainArgs | RuntimeParameter | None = None,
    schema: tfx.components.ImportSchemaGen | None = None,
    trained_on: tfx.dsl.Channel | None = None,
    baseline: tfx.dsl.Channel | None = None,
    resolvers: Sequence[Resolver] = (),
    **settings: Any,
) -> tfx.dsl.Pipeline:
    """Build the pipeline behind ``example_gen``.

    AutoMLExampleGen → StatisticsGen → SchemaGen → ExampleValidator, and AutoMLExampleGen →
    Trainer → Evaluator → Pusher.

    Args:
        name: the pipeline's name.
        root: folder or URL for all artifacts.
        example_gen: the conversion; its task must be known.
        custom_config: the settings of the training.
        eval_config: which models are blessed, usually an :func:`eval_config`.
        serving_dir: folder or URL to which blessed models are pushed.
        train_args: a number of steps, if it is not to follow from the number of epochs.
        schema: the schema that examples are compared with; None: SchemaGen infers it.
        trained_on: the examples of the training; None: those of ``example_gen``.
        baseline: the model with which training starts, and which the new one must not be below.
        resolvers: the nodes behind these channels.
        **settings: of ``tfx.dsl.Pipeline``.
    """
    examples = example_gen.outputs["examples"]
    given = example_gen.exec_properties
    columns = make_options({"schema": given.get("schema")}).declared_schema
    declared = () if columns is None else columns.table.features()
    # All features except payloads and unique names.
    features = statistics_features(given["task"], sorted(declared))
    statistics_gen = tfx.components.StatisticsGen(
        examples=examples, stats_options=tfdv.StatsOptions(feature_allowlist=features)
    )
    statistics = statistics_gen.outputs["statistics"]
    schema = schema or tfx.components.SchemaGen(statistics=statistics)
    example_validator = tfx.components.ExampleValidator(
        statistics=statistics, schema=schema.outputs["schema"]
    )
    trainer = Trainer(
        run_fn="recordgen.training.run_fn",
        examples=trained_on or examples,
        base_model=baseline,
        custom_config=custom_config,
        # With zero steps, TFX's default, the training uses its number of epochs.
        train_args=train_args or tfx.proto.TrainArgs(),
        eval_args=tfx.proto.EvalArgs(),
    )
    model = trainer.outputs["model"]
    evaluator = tfx.components.Evaluator(
        examples=examples, model=model, baseline_model=baseline, eval_config=eval_config
    )
    pusher = tfx.components.Pusher(
        model=model,
        model_blessing=evaluator.outputs["blessing"],
        push_destination=tfx.proto.PushDestination(
            filesystem=tfx.proto.PushDestination.Filesystem(base_directory=serving_dir)
        ),
    )
    steps = [example_gen, statistics_gen, schema, example_validator, trainer, evaluator, pusher]
    return tfx.dsl.Pipeline(
        name, root, components=[*resolvers, *steps], enable_cache=True, **settings
    )


def create_local_pipeline(settings: Settings, workdir: str) -> tfx.dsl.Pipeline:
    """Build the pipeline that keeps artifacts, metadata and models in ``workdir``.

    With a curated schema, it is the pipeline of a new span::

        earlier examples ─(numbers of labels)─▶ AutoMLExampleGen ─▶ StatisticsGen ─▶ …Validator
                                                              │          curated schema ──┘
              the last spans ◀────────────────────────────────┤
                    │                                         │
                 Trainer ◀─(warm start)─ last blessed model ──┼─▶ Evaluator ─▶ Pusher
                    └─────────────────────────────────────────┴────────┘

    The Evaluator scores the new model and the last blessed model on the newest span, matching
    labels by name, and blesses the new model if it is good enough and not worse.
    """
    measured = eval_config(settings.task, settings.min_score)
    if settings.curated_schema:
        change = measured.metrics_specs[0].metrics[0].threshold.change_threshold
        change.direction = tfma.MetricDirection.HIGHER_IS_BETTER
        change.absolute.value = -TOLERANCE
        inputs = _inputs_of_span(settings)
    else:
        inputs = {"example_gen": example_gen_of(settings)}
    store = tfx.orchestration.metadata.sqlite_metadata_connection_config(metadata_path(workdir))
    return create_pipeline(
        settings.name,
        f"{workdir}/artifacts",
        **inputs,
        custom_config=settings.custom_config,
        eval_config=measured,
        serving_dir=f"{workdir}/serving",
        metadata_connection_config=store,
        beam_pipeline_args=list(LOCAL_BEAM_ARGS),
    )


def _inputs_of_span(settings: Settings) -> dict[str, Any]:
    """Return the arguments of :func:`create_pipeline` that earlier spans and models give."""
    # Transform's examples have the same type and differ only in their producer.
    converted = tfx.dsl.Channel(type=Examples, producer_component_id=AutoMLExampleGen.__name__)
    earlier = Resolver(
        strategy_class=tfx.dsl.experimental.LatestArtifactStrategy, previous=converted
    ).with_id("earlier_examples")
    example_gen = example_gen_of(settings, previous=earlier.outputs["previous"])
    rolling = tfx.proto.RangeConfig(rolling_range=tfx.proto.RollingRange(num_spans=settings.window))
    last_spans = Resolver(
        strategy_class=SpanRangeStrategy, config={"range_config": rolling}, examples=converted
    ).with_id("last_spans")
    last_spans.add_upstream_node(example_gen)
    blessed = Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
        model=tfx.dsl.Channel(type=Model),
        model_blessing=tfx.dsl.Channel(type=ModelBlessing),
    ).with_id("last_blessed_model")
    return {
        "example_gen": example_gen,
        "schema": tfx.components.ImportSchemaGen(settings.curated_schema),
        "trained_on": last_spans.outputs["examples"],
        "baseline": blessed.outputs["model"],
        "resolvers": (earlier, last_spans, blessed),
    }


def span_range(span: int | None) -> tfx.proto.RangeConfig | None:
    """Return the range of one span; None for the latest."""
    if span is None:
        return None
    static = tfx.proto.StaticRange(start_span_number=span, end_span_number=span)
    return tfx.proto.RangeConfig(static_range=static)


def example_gen_of(settings: Settings, **replaced: Any) -> AutoMLExampleGen:
    """Return the conversion; ``replaced`` are other parameters of it."""
    fractions = settings.options.split.fractions
    shares = [
        tfx.proto.SplitConfig.Split(name=name, hash_buckets=weight)
        for name, weight in zip(fractions.names, fractions.weights, strict=True)
        if weight
    ]
    # The shares are in output_config, as in every ExampleGen.
    given = {name: getattr(settings.options, name) for name in OPTION_TYPES if name != "split"}
    options = {name: value for name, value in given.items() if value != OPTIONS[name].default}
    # Without split eval, Trainer and Evaluator would fail after the whole conversion.
    options["fail_on"] = (NO_EVAL, *settings.options.fail_on)
    splits = [tfx.proto.Input.Split(name="import", pattern=settings.pattern)]
    parameters = {
        "input_base": settings.input_base,
        "input_config": tfx.proto.Input(splits=splits),
        "output_config": tfx.proto.Output(split_config=tfx.proto.SplitConfig(splits=shares)),
        "range_config": span_range(settings.span),
        "dataset_version": settings.dataset_version,
        "fingerprint_images": settings.fingerprint_images,
        **options,
        "task": settings.task,
    }
    return AutoMLExampleGen(**{**parameters, **replaced})


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
            tfma.MetricsSpec(metrics=[measure, tfma.MetricConfig(class_name="ExampleCount")])
        ],
    )
