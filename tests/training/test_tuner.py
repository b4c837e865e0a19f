"""Hyperparameter search: training, score and report of trials."""

import logging

import pytest
import tensorflow as tf

from recordgen import convert, read_dataset
from recordgen.errors import DataError, UsageError
from recordgen.exports.lineage import find_lineage
from recordgen.kubeflow.evaluate import evaluate
from recordgen.training import SearchConfig, run_fn, tuner_fn
from recordgen.training.replicas import Replicas

pytest.importorskip("keras_tuner", reason="KerasTuner only comes with TFX")

from recordgen.training import tuner

SMALL = {"image_size": [8, 8], "batch_size": 12, "epochs": 1}


@pytest.fixture
def tuner_args(fn_args, tmp_path):
    """The FnArgs of TFX's Tuner, without folders for a model and its logs."""

    def make(custom_config, **changes):
        places = {"serving_model_dir": None, "model_run_dir": None, "working_dir": str(tmp_path)}
        return fn_args(custom_config={**SMALL, **custom_config}, **places, **changes)

    return make


def numbers(folder):
    """Convert rows of a number and its double; return the folder of the examples."""
    rows = [("TRAIN", n) for n in range(96)] + [("VALIDATION", n) for n in range(0, 96, 7)]
    lines = "".join(f"{split},{n / 96},{n / 48}\n" for split, n in rows)
    (folder / "a.csv").write_text(f"ml_use,x,y\n{lines}")
    convert(str(folder / "a.csv"), str(folder / "out"), task="tabular", columns="target=y")
    return str(folder / "out")


def of(root):
    return {f"{split}_files": [f"{root}/Split-{split}/*"] for split in ("train", "eval")}


def dying_in_the_second():
    """Return a hook of KerasTuner that runs when a trial begins and is already recorded."""
    begun = []

    def begin(trial):
        begun.append(trial)
        if len(begun) == 2:
            raise KeyboardInterrupt

    return begin


@pytest.mark.slow
def test_a_killed_search_resumes_and_its_best_model_is_trained_again(
    fn_args, tuner_args, tmp_path, caplog, monkeypatch
):
    root = numbers(tmp_path)
    rates = [1e-9, 0.05]
    kept = tmp_path / "kept"
    settings = {"search": {"learning_rate": rates}, "trials": 9, "checkpoint_dir": str(kept)}
    args = tuner_args({**settings, "epochs": 3}, **of(root))
    with caplog.at_level(logging.INFO, "recordgen.training"):
        killed, kwargs = tuner_fn(args)
        monkeypatch.setattr(killed, "on_trial_begin", dying_in_the_second())
        with pytest.raises(KeyboardInterrupt):
            killed.search(**kwargs)
        args.working_dir = str(tmp_path / "another")  # TFX creates one for each run
        found, kwargs = tuner_fn(args)
        found.search(**kwargs)
        assert not [path for path in kept.rglob("*") if path.is_file()]
        best, other = found.oracle.get_best_trials(2)
        assert best.score > 0.5 > other.score
        assert [best.hyperparameters["learning_rate"], len(found.oracle.trials)] == [rates[1], 2]
        done = [item.getMessage() for item in caplog.records if "trial" in item.getMessage()]
        assert [line.partition(":")[0] for line in done] == [
            *("trial 0", "trial 1", f"best trial {best.trial_id}")
        ]
        run = fn_args(custom_config={**SMALL, "epochs": 3}, **of(root))
        run.hyperparameters = best.hyperparameters.get_config()
        run_fn(run)
    assert find_lineage(run.serving_model_dir).model.settings["learning_rate"] == rates[1]
    measured = evaluate(run.serving_model_dir, root, read_dataset(root), "eval")
    assert (measured.measure, measured.score) == ("r2", pytest.approx(best.score, rel=1e-4))


def test_trials_without_a_model_fail_alone(tuner_args):
    found, kwargs = tuner_fn(tuner_args({"search": {"model": ["InceptionV3", "VGG16"]}}))
    with pytest.raises(DataError, match="model"):
        found.search(**kwargs)
    assert [trial.status for trial in found.oracle.trials.values()] == 2 * ["FAILED"]


def test_a_search_without_a_score_is_an_error(tuner_args, tmp_path):
    root = numbers(tmp_path)
    args = tuner_args({"trials": 1, "batch_size": 1}, eval_steps=1, **of(root))
    found, kwargs = tuner_fn(args)
    with pytest.raises(DataError):
        found.search(**kwargs)


def test_a_damaged_record_ends_the_search(tuner_args, damaged_shard):
    found, kwargs = tuner_fn(tuner_args({}, **of(damaged_shard.parents[1])))
    with pytest.raises(RuntimeError, match=rf"{damaged_shard}: record \d+: "):
        found.search(**kwargs)
    assert len(found.oracle.trials) == 3


@pytest.mark.parametrize(
    ("custom_config", "changes", "message"),
    [
        # custom_config, other arguments, the error
        ({"search": {"colour": [0, 0.1]}, "augment": "photo"}, {"eval_files": []}, "search"),
        ({"epoch": 1}, {}, "custom_config"),
        ({"search": {"rate": [1, 2]}}, {}, "search"),
        ({"search": {"seed": [1, 2]}}, {}, "search"),
        ({"search": {"dropout": 0.5}}, {}, r"search.*dropout"),
        ({"search": {"dropout": [0, 0.5, "log"]}}, {}, r"dropout.*'log'"),
        ({"search": {"dropout": [0.5, 0.1, "linear"]}}, {}, "dropout"),
        ({"search": {"epochs": [1, 2.5, "log"]}}, {}, "epochs"),
        ({"search": {"weights": [None, "a.h5"]}}, {}, "weights"),
    ],
)
def test_a_mistake_is_reported_before_the_first_trial(tuner_args, custom_config, changes, message):
    with pytest.raises(UsageError, match=message):
        tuner_fn(tuner_args(custom_config, **changes))


@pytest.mark.parametrize(
    ("custom_config", "space"),
    [
        # custom_config; kind and values, or ends and scale, by setting
        (
            {},
            {"learning_rate": ("Float", 1e-4, 1e-2, "log"), "dropout": ("Float", 0, 0.5, "linear")},
        ),
        (
            {
                "model": "VGG16",
                "weights": "w.h5",
                "frozen_epochs": 1,
                "fine_tune_rate": 0.01,
                "search": {},
            },
            {
                "learning_rate": ("Float", 1e-4, 1e-2, "log"),
                "fine_tune_rate": ("Float", 0.001, 0.1, "log"),
                "dropout": ("Float", 0, 0.5, "linear"),
            },
        ),
        (
            {
                "search": {
                    "batch_size": [16, 32, 64],
                    "epochs": [1, 9, "log"],
                    "dropout": [0, 0.25],
                    "schedule": ["cosine", "constant"],
                    "image_size": [[8, 8], [16, 24]],
                }
            },
            {
                "batch_size": [16, 32, 64],
                "epochs": ("Int", 1, 9, "log"),
                "dropout": [0.0, 0.25],
                "schedule": ["cosine", "constant"],
                "image_size": ["[8, 8]", "[16, 24]"],
            },
        ),
    ],
)
def test_a_list_is_a_choice_or_a_range(custom_config, space):
    found = tuner.to_hyperparameters(SearchConfig.from_custom_config(custom_config)).get_config()
    dimensions = {}
    for each in found["space"]:
        config = each["config"]
        ends = (config.get("min_value"), config.get("max_value"), config.get("sampling"))
        dimensions[config["name"]] = config.get("values") or (each["class_name"], *ends)
    assert dimensions == {
        name: pytest.approx(it) if isinstance(it, float) else it for name, it in space.items()
    }


def test_another_search_has_another_folder(tuner_args):
    space = {"learning_rate": [0.1, 0.2, "log"]}
    configs = (
        {"search": space},
        {"search": {"learning_rate": [0.1, 0.2, "linear"]}},
        {"search": space, "trials": 3},
    )
    names = [tuner_fn(tuner_args(config)).tuner.project_name for config in configs]
    assert len({*names, tuner_fn(tuner_args(configs[0])).tuner.project_name}) == len(configs)


def test_a_search_on_several_machines_is_refused(tuner_args, monkeypatch):
    two = Replicas(strategy=tf.distribute.get_strategy(), worker=0, workers=2)
    monkeypatch.setattr(tuner, "find_replicas", lambda: two)
    with pytest.raises(UsageError, match="TF_CONFIG"):
        tuner_fn(tuner_args({}))


@pytest.mark.parametrize("algorithm", ["random", "bayesian"])
def test_a_seed_decides_what_is_tried(tuner_args, algorithm):
    space = {"learning_rate": [1e-4, 1e-2, "log"], "batch_size": [2, 64, "log"]}

    def tried(seed):
        config = {"search": space, "algorithm": algorithm, "seed": seed}
        oracle = tuner_fn(tuner_args(config)).tuner.oracle
        return [oracle.populate_space(str(n))["values"] for n in range(9)]

    first = tried(0)
    assert tried(0) == first
    assert all(values not in first for values in (*tried(1), *tried(2)))
    assert {type(values["batch_size"]) for values in first} == {int}
    assert all(2 <= values["batch_size"] <= 64 for values in first)
    rates = [values["learning_rate"] for values in first]
    assert 1e-4 <= min(rates) < 1e-3 < max(rates) <= 1e-2
