"""Training on several devices and machines: every example once, equal weights, one writer."""

import json
import textwrap

import numpy as np
import pytest
import tensorflow as tf

from recordgen.errors import UsageError
from recordgen.training import TrainingConfig
from recordgen.training.fitting import Replicas, find_replicas
from tests.clusters import free_port
from tests.cpp_loader import CppModel
from tests.preloaded import WITH_TENSORFLOW
from tests.trainer import records_of

SETTINGS = {"image_size": [8, 8], "batch_size": 12, "epochs": 2, "learning_rate": 0.01}
SETTINGS |= {"augment": "none", "patience": 2, "checkpoint_minutes": 0}

# All settings with random, averaged or counted state.
RESUMED = {"augment": "photo", "colour": 0.1, "class_weights": "balanced", "accumulate": 2}
RESUMED |= {"warmup_epochs": 0.5, "precision": "mixed_bfloat16"}

# Trains in one process for each port, or on two devices of one process without ports. Each process
# reports the images that it saw, in order, and the final weights of each of its copies. If n is not
# 0, the chief is killed when all workers have written their n-th positions.
TRAIN = textwrap.dedent("""
    import hashlib, json, os, signal, sys
    from pathlib import Path
    import keras
    import tensorflow as tf
    from recordgen.training.fitting import Fitting
    from recordgen.training.fitting import Replicas
    from tests import trainer

    examples, root, settings, ports, killed_at = json.loads(sys.argv[1])
    root = Path(root)
    digest = lambda array: hashlib.sha256(array.tobytes()).hexdigest()
    seen, calls = [], 0
    divide, broadcast = Replicas.divide, Replicas.broadcast_number
    remove_checkpoints = Fitting.remove_checkpoints

    def divide_and_note(replicas, batch):
        seen.append([digest(image) for image in batch[0].numpy()])
        return divide(replicas, batch)

    def broadcast_or_die(replicas, number):
        global calls
        found = broadcast(replicas, number)
        calls += type(number) is int  # the number of a checkpoint
        if replicas.is_chief and calls == killed_at > 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    def report_and_remove(fitting):
        replicas = fitting.replicas
        values = [weight.value for weight in fitting.models.saved.weights]
        local = map(replicas.strategy.experimental_local_results, values)
        copies = [[digest(value.numpy()) for value in copy] for copy in zip(*local)]
        policy = keras.config.dtype_policy().name
        report = {"seen": seen, "copies": copies, "policy": policy}
        (root / f"worker-{replicas.worker}.json").write_text(json.dumps(report))
        remove_checkpoints(fitting)

    Replicas.divide, Replicas.broadcast_number = divide_and_note, broadcast_or_die
    Fitting.remove_checkpoints = report_and_remove

    def train():
        tf.config.experimental.enable_op_determinism()
        print(trainer.train_and_listen(examples, root, **settings)[1])

    root.mkdir(exist_ok=True)
    if not ports:
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
        train()
        sys.exit()
    processes = []
    for number, _ in enumerate(ports):
        processes.append(os.fork())
        if not processes[-1]:
            os.environ["TF_CONFIG"] = json.dumps({
                "cluster": {"worker": [f"localhost:{port}" for port in ports]},
                "task": {"type": "worker", "index": number},
            })
            train()
            sys.exit()
    codes = [os.waitpid(processes[0], 0)[1]]
    if codes[0]:
        for process in processes[1:]:
            os.kill(process, signal.SIGKILL)
    sys.exit(any(codes + [os.waitpid(process, 0)[1] for process in processes[1:]]))
""")


def train(examples, root, workers, killed_at=0, **settings):
    """Train in a number of processes; return the reports of all."""
    ports = [free_port() for _ in range(workers)]
    words = json.dumps([examples, str(root), {**SETTINGS, **settings}, ports, killed_at])
    done = WITH_TENSORFLOW.run("-c", TRAIN, words)
    assert bool(done.returncode) == bool(killed_at), done.stderr
    return done, [json.loads(path.read_text()) for path in sorted(root.glob("worker-*.json"))]


def images(batches):
    """Return the images of some batches."""
    return [image for batch in batches for image in batch]


@pytest.mark.slow
def test_two_workers_train_as_one_also_after_a_kill(examples, tmp_path):
    """They see each example once, and resume with the same weights."""
    _, workers = train(examples, tmp_path / "whole", 2)
    for first in (0, 5):  # two epochs of five steps
        epoch = [images(worker["seen"][first : first + 5]) for worker in workers]
        assert [len(part) for part in epoch] == [30, 30]
        assert len(set(epoch[0] + epoch[1])) == 60
    chief, other = (worker["copies"] for worker in workers)
    assert len(chief) == len(other) == 1
    assert chief == other
    CppModel(tmp_path / "whole" / "model")
    logs = list((tmp_path / "whole" / "logs").rglob("*.v2"))
    assert len(logs) == 2  # metrics of train and of eval: only from the chief
    assert not list((tmp_path / "whole").rglob("ckpt*"))

    killed = tmp_path / "killed"
    assert train(examples, killed, 2, killed_at=7)[1] == []
    kept = sorted(path.name for path in killed.rglob("ckpt*.index"))
    assert kept == ["ckpt-6.index"] * 3 + ["ckpt-7.index"] * 2
    done, again = train(examples, killed, 2)
    assert "resumed after epoch 1/2 and step 1/5" in done.stdout
    for whole, resumed in zip(workers, again, strict=True):
        assert whole["seen"][6:] == resumed["seen"]
        assert whole["copies"] == resumed["copies"]


@pytest.mark.slow
def test_a_killed_training_ends_with_the_same_weights(examples, tmp_path):
    """A training resumes with all of its state, and restores the precision of its process."""
    _, [whole] = train(examples, tmp_path / "whole", 1, **RESUMED)
    killed = tmp_path / "killed"
    assert train(examples, killed, 1, killed_at=7, **RESUMED)[1] == []
    assert not (killed / "model").exists()
    done, [again] = train(examples, killed, 1, **RESUMED)
    assert "resumed after epoch 1/2 and step 1/5" in done.stdout
    assert (again["copies"], again["policy"]) == (whole["copies"], "float32")
    scores = CppModel(killed / "model").run("evaluate", examples=records_of(examples))["scores"]
    assert scores.dtype == np.float32
    assert not list(killed.rglob("ckpt*"))


def test_each_device_gets_half_of_a_batch(examples, tmp_path):
    """Both copies of the weights stay equal."""
    _, [worker] = train(examples, tmp_path, 0)
    assert [len(batch) for batch in worker["seen"]] == [12] * 10
    assert len(set(images(worker["seen"][:5]))) == 60
    first, second = worker["copies"]
    assert first == second
    CppModel(tmp_path / "model")


# TF_CONFIG, the error
CLUSTERS = [
    ("{", r"TF_CONFIG.*JSON"),
    (
        {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "evaluator", "index": 0}},
        r"worker 0, worker 1 \(got evaluator 0\)",
    ),
]


@pytest.mark.parametrize(("tf_config", "message"), CLUSTERS)
def test_a_process_without_a_part_in_its_cluster_is_refused(monkeypatch, tf_config, message):
    """The error names TF_CONFIG's fault."""
    text = tf_config if isinstance(tf_config, str) else json.dumps(tf_config)
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(UsageError, match=message):
        find_replicas()


def test_a_process_may_end_before_another_has_left(monkeypatch):
    """Only leaving ignores that the other one is gone."""

    def closed(replicas, values):
        raise tf.errors.UnavailableError(None, None, "Socket closed")

    monkeypatch.setattr(Replicas, "_broadcast", closed)
    workers = Replicas(strategy=ThreeDevices(), worker=0, workers=2)
    with pytest.raises(tf.errors.UnavailableError):
        workers.broadcast_number(0)
    workers.leave()


class ThreeDevices:
    """A strategy that only has a number of copies."""

    num_replicas_in_sync = 3


@pytest.mark.parametrize(("examples", "batch_size"), [(8, 6), (6, 6), (2, 3)])
def test_a_batch_of_a_small_split_is_divisible_by_the_devices(examples, batch_size):
    """A batch that the split makes smaller has the same number of examples for each device."""
    replicas = Replicas(strategy=ThreeDevices(), worker=0, workers=1)
    assert replicas.divisible(examples) == batch_size


# settings, the error
BATCHES = [({"batch_size": 32}, "32"), ({"batch_size": 33, "accumulate": 2}, "accumulate")]


@pytest.mark.parametrize(("settings", "message"), BATCHES)
def test_a_batch_must_be_divisible_by_the_devices(settings, message):
    """So must the steps that gradients add up."""
    replicas = Replicas(strategy=ThreeDevices(), worker=0, workers=1)
    with pytest.raises(UsageError, match=message):
        replicas.check(TrainingConfig(**settings))
