"""The steps of ``pipelines/kubeflow.py`` beside conversion, as kfp's container components.

Each starts ``python -m recordgen.kubeflow STEP`` in the one image and hands it KFP's own
description of the call: nothing is installed when a step starts, and the image needs no kfp.
"""

# No postponed annotations: kfp reads them from the functions as they are. And a function that says
# what it returns would have an output of that type.

from kfp import dsl
from kfp.dsl import Artifact, ClassificationMetrics, Dataset, Input, Metrics, Model, Output

from recordgen.dataset.splits import EVAL
from recordgen.kubeflow.train import NO_WEIGHTS
from recordgen.training import TrainingConfig

_TRAINING = TrainingConfig()


def _container(image, step):
    return dsl.ContainerSpec(
        image=image,
        command=["python", "-m", "recordgen.kubeflow", step],
        args=["--executor-input", dsl.PIPELINE_TASK_EXECUTOR_INPUT_PLACEHOLDER],
    )


def statistics_step(image: str):
    """Return the step that looks at a dataset with TensorFlow Data Validation."""

    @dsl.container_component
    def statistics(
        dataset: Input[Dataset],
        statistics: Output[Artifact],
        schema: Output[Artifact],
        anomalies: Output[Artifact],
        anomaly_count: dsl.OutputPath(int),
    ):
        """Statistics of each split, a schema of train, and what in the others breaks it.

        Args:
            dataset: what conversion wrote.
            statistics: folder of Split-train/FeatureStats.pb and so on.
            schema: folder of schema.pbtxt.
            anomalies: folder of anomalies.txt, a line for each.
            anomaly_count: how many there are.
        """
        return _container(image, "statistics")

    return statistics


def train_step(image: str):
    """Return the step that trains; its parameters are the fields of ``TrainingConfig``."""

    @dsl.container_component
    def train(
        dataset: Input[Dataset],
        model: Output[Model],
        logs: Output[Artifact],
        model_name: str = _TRAINING.model,
        weights: str = NO_WEIGHTS,
        scale: str = _TRAINING.scale,
        image_size: list = list(_TRAINING.image_size),  # noqa: B006  (kfp's default, never changed)
        batch_size: int = _TRAINING.batch_size,
        epochs: int = _TRAINING.epochs,
        learning_rate: float = _TRAINING.learning_rate,
        dropout: float = _TRAINING.dropout,
        augmentation: float = _TRAINING.augmentation,
        seed: int = _TRAINING.seed,
        top_k: int = _TRAINING.top_k,
        frames: int = _TRAINING.frames,
    ):
        """Train an image classifier on split train, and validate it on eval.

        Args:
            dataset: what conversion wrote.
            model: SavedModel with the signatures serving_default, evaluate and truth.
            logs: folder of TensorBoard's logs.
            model_name: small_cnn, or a model of keras.applications.
            weights: none, or imagenet, which Keras downloads.
            scale: the range of pixels that the model takes; auto, what it was trained on.
            image_size: height and width to which images are resized, in pixels.
            batch_size: examples per step.
            epochs: passes over split train.
            learning_rate: of Adam, at the start.
            dropout: share of features dropped before the last layer.
            augmentation: shift, turn and zoom training images by up to this share.
            seed: of weights, order, dropout and augmentation.
            top_k: labels that the model answers with, best first.
            frames: of a video's segment so many are looked at.
        """
        return _container(image, "train")

    return train


def evaluate_step(image: str):
    """Return the step that asks a model for the labels of one split."""

    @dsl.container_component
    def evaluate(
        dataset: Input[Dataset],
        model: Input[Model],
        metrics: Output[Metrics],
        confusion: Output[ClassificationMetrics],
        score: dsl.OutputPath(float),
        loss: dsl.OutputPath(float),
        examples: dsl.OutputPath(int),
        split: str = EVAL,
    ):
        """Compare a model's answers with the labels of a split.

        Args:
            dataset: what conversion wrote.
            model: what train saved.
            metrics: score, loss and examples, and the score of each of up to a hundred labels.
            confusion: the confusion matrix of up to a hundred labels, where there is one of each.
            score: 0..1: share of right answers; of several labels the mean of their AUC, of boxes
                mean average precision, of entities F1, of numbers R².
            loss: mean cross-entropy; of boxes mean of 1 - IoU, of numbers mean squared error.
            examples: labelled examples that were looked at.
            split: the split to look at.
        """
        return _container(image, "evaluate")

    return evaluate


def push_step(image: str):
    """Return the step that copies a model to where a server finds it."""

    @dsl.container_component
    def push(
        model: Input[Model],
        serving_dir: str,
        pushed_to: dsl.OutputPath(str),
    ):
        """Copy a model to serving_dir/VERSION, as TensorFlow Serving expects it.

        Args:
            model: what train saved.
            serving_dir: folder or URL that the step can write to.
            pushed_to: where it went.
        """
        return _container(image, "push")

    return push
