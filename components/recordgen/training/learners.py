"""Which learner is for which task."""

from __future__ import annotations

from collections.abc import Mapping

from recordgen.tasks import (
    Declared,
    ImageClassification,
    ImageMultiLabel,
    ObjectDetection,
    Tabular,
    TextClassification,
    TextEntities,
    TextMultiLabel,
    TextSentiment,
    VideoClassification,
)
from recordgen.training.declared import DeclaredLearner
from recordgen.training.detection import ObjectDetector
from recordgen.training.entities import EntityTagger
from recordgen.training.image_labels import ManyImageLabels, OneImageLabel
from recordgen.training.learner import Learner
from recordgen.training.tables import TableLearner
from recordgen.training.text_labels import ManyTextLabels, OneTextLabel
from recordgen.training.videos import VideoLearner

#: By the task of ``dataset.json``; the tasks are those of recordgen.training.config.MODEL_TASKS.
LEARNERS: Mapping[str, type[Learner]] = {
    ImageClassification.name: OneImageLabel,
    ImageMultiLabel.name: ManyImageLabels,
    ObjectDetection.name: ObjectDetector,
    TextEntities.name: EntityTagger,
    TextClassification.name: OneTextLabel,
    TextMultiLabel.name: ManyTextLabels,
    TextSentiment.name: OneTextLabel,
    Tabular.name: TableLearner,
    VideoClassification.name: VideoLearner,
    Declared.name: DeclaredLearner,
}
