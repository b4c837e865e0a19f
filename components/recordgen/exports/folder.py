"""Class folders: ``train/cat/rex.jpg``, ``val/…``, ``test/…``.

Read by torchvision's ImageFolder, Keras's image_dataset_from_directory, Hugging Face's imagefolder.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import ClassVar

from recordgen import storage
from recordgen.errors import RecordError, UsageError
from recordgen.exports.copying import Copy, ImageCopyExport, ImageExample, one_spelling
from recordgen.messages import listed
from recordgen.messages.masking import masked
from recordgen.tasks import ImageClassification

_log = logging.getLogger(__name__)


class Folder(ImageCopyExport):
    """A folder for each label, with its images."""

    name = "folder"
    tasks = (ImageClassification.name,)
    keeps = ("images", "labels", "numbers", "splits")
    said: ClassVar = {"options": {"layout": "{split}/{label}/*"}}

    def check(self, copy: Copy) -> None:
        for name, split in copy.splits.items():
            if split.unlabelled and not copy.is_lossy:
                raise UsageError(
                    f"{self.name} holds a label for each image, and {split.unlabelled:,} of split "
                    f"{name!r} have none; use export automl, which holds them, or leave them out "
                    f"with --lossy"
                )
        for label in copy.dataset.labels:
            # Why readers would not find a folder of this name.
            fault = "it begins with a dot" if label[:1] == "." else storage.name_fault(label)
            if fault := fault or ("" if label.isprintable() else "it is not printable"):
                raise UsageError(
                    f"{self.name} makes a folder of each label, and {label!r} is no name of a "
                    f"folder: {fault}; use export automl or parquet, which hold every label"
                )
        spellings: defaultdict[str, list[str]] = defaultdict(list)
        for label in copy.dataset.labels:
            spellings[one_spelling(label)].append(label)
        if several := [labels for labels in spellings.values() if len(labels) > 1]:
            _log.warning(
                "%s: labels that differ in case or Unicode form only become one folder on macOS "
                "and Windows: %s; keep the copy on Linux, or use export automl",
                masked(copy.to),
                listed(several, lambda labels: " and ".join(map(ascii, labels))),
            )

    def write(self, copy: Copy) -> None:
        known = frozenset(copy.dataset.labels)

        def files_of(word: str, image: ImageExample) -> dict[str, bytes]:
            if copy.is_lossy and not image.labels:
                return {}
            if len(image.labels) != 1 or image.labels[0] not in known:
                raise RecordError(
                    f"{image.where}: needs one label of dataset.json (got {listed(image.labels)})"
                )
            return {f"{word}/{image.labels[0]}/{image.name}": image.data}

        self.write_images(copy, files_of)
        copy.write_labels()
