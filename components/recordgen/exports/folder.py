"""Class folders: ``train/cat/rex.jpg``, ``val/…``, ``test/…``.

Read by torchvision's ImageFolder, Keras's image_dataset_from_directory, Hugging Face's imagefolder.
"""

from __future__ import annotations

from recordgen.errors import UsageError
from recordgen.exports.copying import Copy
from recordgen.exports.image_files import ImageCopyExport, ImageExample
from recordgen.tasks import ImageClassification

_MAX_NAME_BYTES = 255


class Folder(ImageCopyExport):
    """A folder for each label, with its images."""

    name = "folder"
    tasks = (ImageClassification.name,)
    holds = "images with one label each"

    def check(self, copy: Copy) -> None:
        for name, split in copy.splits.items():
            if split.unlabelled:
                raise UsageError(
                    f"{self.name} holds a label for each image, and {split.unlabelled:,} of split "
                    f"{name!r} have none; use export automl, which holds them"
                )
        for label in copy.dataset.labels:
            if not _is_name(label):
                raise UsageError(
                    f"{self.name} makes a folder of each label, and {label!r} is no name of a "
                    f"folder; use export automl or parquet, which hold every label"
                )

    def write(self, copy: Copy) -> None:
        self.write_images(copy, _files)


def _files(word: str, image: ImageExample) -> dict[str, bytes]:
    [label] = image.labels
    return {f"{word}/{label}/{image.name}": image.data}


def _is_name(label: str) -> bool:
    is_short = 0 < len(label.encode()) <= _MAX_NAME_BYTES
    return is_short and label[0] != "." and label.isprintable() and not set(label) & {"/", "\\"}
