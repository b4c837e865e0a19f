"""The runtime parameters of a compiled job, by name.

The parameters of :data:`MESSAGES` are whole messages of TFX, as JSON:
``span=7`` → ``range_config={"static_range": {"start_span_number": 7, …}}``. The settings of a
training and ``min_score`` are inside such messages; each option of the conversion is a parameter.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pipelines.config import PATTERN_HELP, PipelineConfig, check_span, check_train_steps
from recordgen.dataset.splits import SplitFractions
from recordgen.errors import UsageError, did_you_mean
from recordgen.options import NO_NAMES, OPTIONS, Option, make_options, without_unset
from recordgen.training.config import TRAINING_OPTIONS, TrainingConfig

INPUT_BASE = "input_base"
INPUT_CONFIG = "input_config"
RANGE_CONFIG = "range_config"
DATASET_VERSION = "dataset_version"
TRAIN_ARGS = "train_args"
OUTPUT_CONFIG = "output_config"
CUSTOM_CONFIG = "custom_config"
EVAL_CONFIG = "eval_config"
MESSAGES = (INPUT_CONFIG, RANGE_CONFIG, TRAIN_ARGS, OUTPUT_CONFIG, CUSTOM_CONFIG, EVAL_CONFIG)

# The measure and the features of the statistics depend on these, so they are compiled in.
_COMPILED = ("task", "schema")
_FRACTIONS = "split_fractions"  # in OUTPUT_CONFIG
_MIN_SCORE = "min_score"  # in EVAL_CONFIG

#: The options of the conversion that are parameters.
OPTION_NAMES = tuple(name for name in OPTIONS if name not in (*_COMPILED, _FRACTIONS))
NAMES = (INPUT_BASE, DATASET_VERSION, *MESSAGES, *OPTION_NAMES)
#: All settings of a run: the parameters, and the settings inside messages.
SETTINGS = (*NAMES, *(name for name in TRAINING_OPTIONS if name != "seed"), _FRACTIONS, _MIN_SCORE)

#: The arguments of :func:`parameter_values`, which have their own options.
ARGUMENTS = ("data", "pattern", "span", "dataset_version", "train_steps")

BUCKET = "gs://"


def parameter_values(
    *,
    data: str | None = None,
    pattern: str | None = None,
    span: int | None = None,
    dataset_version: str | None = None,
    train_steps: int | None = None,
) -> dict[str, str]:
    """Return the parameters for the given arguments. Raises: UsageError."""
    values = {}
    if data is not None:
        check_url("--data", data)
        values[INPUT_BASE] = data
    if pattern is not None:
        values[INPUT_CONFIG] = json.dumps({"splits": [{"name": "import", "pattern": pattern}]})
    if span is not None:
        static = {"start_span_number": span, "end_span_number": span}
        values[RANGE_CONFIG] = json.dumps({"static_range": static})
    if dataset_version is not None:
        values[DATASET_VERSION] = dataset_version
    if train_steps is not None:
        check_train_steps(train_steps)
        values[TRAIN_ARGS] = json.dumps({"num_steps": train_steps})
    return values


#: The defaults: the latest span, no version, and the compiled number of epochs.
UNSET = {RANGE_CONFIG: "", DATASET_VERSION: "", TRAIN_ARGS: "{}"}


def config_values(config: PipelineConfig) -> dict[str, Any]:
    """Return the parameters of a pipeline's config, except ``eval_config``."""
    options = config.options
    return {
        **{name: _option_value(getattr(options, name), OPTIONS[name]) for name in OPTION_NAMES},
        OUTPUT_CONFIG: output_config(options.split_fractions),
        CUSTOM_CONFIG: json.dumps(config.training.to_custom_config()),
    }


def _option_value(value: Any, option: Option) -> Any:
    """Return an option as a parameter; parameters have neither lists nor None nor booleans."""
    if option.several:
        return ",".join(value) or NO_NAMES
    found = option.kind() if value is None else option.kind(value)
    return int(found) if option.kind is bool else found


def output_config(fractions: SplitFractions) -> str:
    """Return the shares of the splits as TFX's ``Output``, in JSON."""
    shares = zip(fractions.names, fractions.weights, strict=True)
    splits = [{"name": name, "hash_buckets": weight} for name, weight in shares if weight]
    return json.dumps({"split_config": {"splits": splits}})


def check_url(option: str, url: str) -> None:
    """Check that the service can reach ``url``. Raises: UsageError."""
    if not url.startswith(BUCKET) or not url.removeprefix(BUCKET).strip("/"):
        raise UsageError(f"{option} must be a folder in a bucket, gs://BUCKET/… (got {url!r})")


def below(folder: str, name: str) -> str:
    """Return the URL of ``name`` in ``folder``."""
    return f"{folder.rstrip('/')}/{name}"


def add_parameter_options(parser: argparse.ArgumentParser, *, data_required: bool) -> None:
    """Add the options that become runtime parameters."""
    add = parser.add_argument
    add("--data", required=data_required, help="gs:// folder of the import files")
    add("--pattern", help=PATTERN_HELP)
    add("--span", type=int, help="the span to read (days since 1970 for dates); default: latest")
    add("--dataset-version", help="your own name for this data; part of the cache key")
    add("--train-steps", type=int, help="total of steps to train; default: from --epochs")
    add(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of conversion or training, min_score, or a parameter of the job: "
        f"{', '.join(MESSAGES)}; may be repeated",
    )


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings on the command line; ``--parameter`` overrides. Raises: UsageError."""
    values = parameter_values(**{name: getattr(args, name) for name in ARGUMENTS})
    return {**values, **parse_parameters(args.parameter, SETTINGS)}


def parse_parameters(texts: Sequence[str], names: Collection[str]) -> dict[str, str]:
    """``["dataset_version=2026-11"]`` → ``{"dataset_version": "2026-11"}``. Raises: UsageError."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            hint = did_you_mean(name, tuple(names), f"; the names are {', '.join(names)}")
            raise UsageError(f"--parameter must be NAME=VALUE (got {text!r}){hint}")
        values[name] = value
    return values


def with_settings(values: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job's parameters with other settings, by :data:`SETTINGS`. Raises: UsageError."""
    changed = dict(values)
    training = _message(values, CUSTOM_CONFIG)
    for name, value in settings.items():
        if name == _FRACTIONS:
            changed[OUTPUT_CONFIG] = output_config(SplitFractions.parse(value))
        elif name == _MIN_SCORE:
            changed[EVAL_CONFIG] = _with_min_score(values, _decoded(name, value, float))
        elif name in OPTION_NAMES:
            changed[name] = _decoded(name, value, OPTIONS[name].kind)
        elif name not in NAMES:
            training[name] = _decoded(name, value, TRAINING_OPTIONS[name].kind)
        else:
            changed[name] = value
    if CUSTOM_CONFIG not in settings:
        if "seed" in settings:
            training["seed"] = changed["seed"]
        config = TrainingConfig.from_custom_config(without_unset(training, TRAINING_OPTIONS))
        changed[CUSTOM_CONFIG] = json.dumps(config.to_custom_config())
    return changed


def _decoded(name: str, text: str, kind: type) -> Any:
    """Decode the JSON of a setting; a setting of type str is its own text."""
    if kind is str:
        return text
    try:
        value = json.loads(text)
    except ValueError as exc:
        raise UsageError(f"{name} must be a number, or a list as JSON (got {text!r})") from exc
    return int(value) if isinstance(value, bool) else value


def _with_min_score(values: Mapping[str, Any], score: float) -> str:
    """Return ``eval_config`` with another lower bound of the score."""
    config: Any = _message(values, EVAL_CONFIG)
    for metrics in config["metrics_specs"]:
        for metric in metrics["metrics"]:
            if "threshold" in metric:
                metric["threshold"]["value_threshold"]["lower_bound"] = score
    return json.dumps(config)


def check_parameters(values: Mapping[str, Any]) -> None:
    """Check a job's parameters before they are sent.

    Raises:
        UsageError: TFX cannot read a parameter, or parameters contradict each other.
    """
    check_url(INPUT_BASE, values[INPUT_BASE])
    splits = _message(values, INPUT_CONFIG).get("splits")
    if not isinstance(splits, list) or not all(isinstance(s, dict) for s in splits) or not splits:
        raise UsageError(
            f'{INPUT_CONFIG} must be {{"splits": [{{"name": …, "pattern": …}}]}} '
            f"(got {values[INPUT_CONFIG]!r})"
        )
    # Check ints only: TFX also reads other spellings, such as numbers in text.
    static = _message(values, RANGE_CONFIG).get("static_range")
    span = static.get("start_span_number") if isinstance(static, dict) else None
    if isinstance(span, int):
        for split in splits:
            check_span(span, str(split.get("pattern", "")))
    steps = _message(values, TRAIN_ARGS).get("num_steps")
    if isinstance(steps, int):
        check_train_steps(steps)
    # Numbers in a job's file are doubles.
    given = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name in OPTION_NAMES
        if (value := values.get(name)) is not None
    }
    make_options(without_unset(given, OPTIONS))
    TrainingConfig.from_custom_config(_message(values, CUSTOM_CONFIG))


def _message(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    text = values.get(name)
    try:
        message = json.loads(text) if text else {}
    except ValueError as exc:
        raise UsageError(f"{name} must be JSON (got {text!r}: {exc})") from exc
    if not isinstance(message, dict):
        raise UsageError(f"{name} must be a JSON object (got {text!r})")
    return message
