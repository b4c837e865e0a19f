"""The records of a split, and the inputs and labels in them, for any trainer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from recordgen.access.records import Records
from recordgen.core.task.annotation import is_image
from recordgen.errors import UsageError, check_one_of, names_checked

if TYPE_CHECKING:
    from recordgen.access.pairs import AnyItem, ImageItem, Pairs


class Source(Records):
    """The records of a split: ``len(source)``, ``source[7]``, ``source[1:9]``, ``source[[3, 1]]``.

    Each record's checksum is compared. It is read by several threads and forked processes at the
    same time; pickled, it is its place, its split, and what shows whether it was replaced.

    Numbers are NumPy scalars, arrays and lists NumPy arrays; text is str, and the bytes of images
    are uint8 [n] that share the memory of their record. A whole number that records may lack is a
    float with NaN. Examples from Python have bytes as they were. Other tools' records have an array
    for each feature, and a list of arrays for each feature list of a SequenceExample.

    Attributes:
        dataset: the content of ``dataset.json``; None for other tools' files.
        split: the split's name; None for other tools' files.
        features: the specs of the features by name; empty for other tools' files.
        class_names: the labels, in the order of their numbers.
        threads: threads that pay off for batches: one per core, but one for small records on this
            machine, whose threads only wait for the interpreter's lock.
    """

    @property
    def labels(self) -> Any:
        """The labels of all records, see :attr:`recordgen.access.pairs.Pairs.labels`."""
        return self.pairs().labels

    @names_checked
    def images(
        self,
        image_size: int | tuple[int, int] | str | None = None,
        *,
        resize: str = "stretch",
        method: str = "auto",
        dtype: Any = None,
        scale: str = "",
        layout: str = "HWC",
        transform: Callable[[Any], Any] | None = None,
        task: str = "auto",
        boxes: str = "rel_xyxy",
        fields: Sequence[str] = (),
        columns: str = "",
    ) -> Pairs[ImageItem]:
        """Return the decoded images with their labels, as ``recordgen.load`` gives them.

        Pixels are writable, and do not depend on what is imported.

        - one label: the image (uint8 [height, width, 3]) and its class (int64 []; -1: none)
        - any number of labels: the image and float32 [classes] of 0 and 1
        - boxes: the image and a dict of ``boxes`` (float32 [n, 4]: left, top, right and bottom, in
          shares of the returned image), ``labels`` (int64 [n]) and ``count`` (int64 []); boxes
          around crowds only with the field ``is_crowd``
        - masks: the image and the class of each pixel (uint8 [height, width]; 255: none)
        - declared columns: as one label if they are an image and a label; else a dict of columns,
          with all images decoded, the target, and the weight

        Args:
            image_size: height and width in pixels, one number for a square, or a text such as
                ``224x320``; None: as stored.
            resize: ``stretch``, ``fit`` (with black bars) or ``center_crop``.
            method: ``bilinear``, antialiased by Pillow; ``torch``, the same by PyTorch, four times
                as fast and up to one level apart; ``auto``, ``torch`` if PyTorch is installed, else
                ``bilinear``; or ``area``, the pixels of ``recordgen.load``.
            dtype: ``uint8`` from 0 to 255, the default, or ``float32`` from 0 to 1; also the type
                of NumPy or PyTorch.
            scale: the range of pixels, as in ``recordgen.load``: ``-1..1``, a model in
                ``keras.applications``, also with a type: ``-1..1:float16``.
            layout: ``HWC``: [height, width, 3]; or ``CHW``, as PyTorch's layers take them.
            transform: a function of the image, or of the dict of columns, whose result takes its
                place; :meth:`recordgen.access.pairs.Pairs.map` changes labels, too.
            task: of other tools' files, and of files written from Python; ``auto``: image
                classification.
            boxes: the four numbers of a box, as in ``recordgen.load``; keypoints have their unit.
                ``xyxy`` is in pixels of the returned image.
            fields: what else to return of boxes: flags such as ``is_crowd`` (int64 [n]), ``area``
                (float32 [n]), ``keypoints`` (float32 [n, k, 3]), ``masks`` (uint8 [n, height,
                width]).
            columns: the features by their roles, ``image=jpg,label=kind``, of other tools' files,
                and of files written from Python; "": features ``image``, ``text`` and ``label``
                have the roles of their names.

        Raises: UsageError: an argument is wrong, or the records have no images.
        """
        from recordgen.access.decode import Decoder  # loads decoders of images
        from recordgen.access.pairs import Pairs
        from recordgen.access.scales import DTYPES

        name = getattr(dtype, "__name__", str(dtype)).removeprefix("torch.")
        check_one_of("dtype", name, (*DTYPES, "None"))
        pixels = ":".join(filter(None, [scale, name.removeprefix("None")])) or "uint8"
        names = (fields,) if isinstance(fields, str) else tuple(fields)
        size: Any = image_size  # of any form
        decoder = Decoder(size, resize, method, pixels, layout, boxes, names)
        found: Pairs[ImageItem] = Pairs(self, decoder, task, columns)
        if not any(map(is_image, found.names)):
            raise UsageError(
                f"{self!r} has no images to decode; source.pairs() has its inputs and labels"
            )
        return found if transform is None else found.map(partial(_with_inputs, transform))

    def pairs(self, *, task: str = "auto", columns: str = "") -> Pairs[AnyItem]:
        """Return the inputs and labels of examples, as ``recordgen.load`` gives them.

        - texts: the text (str) and its class, or float32 [classes] of 0 and 1
        - entities: a dict of ``tokens`` (str [n]) and ``mask`` (bool [n]), and the tags (int64 [n])
        - tables: a dict of columns, the target (int64 [] or float32 []), and the weight
        - videos: a dict of ``uri``, ``start`` and ``end``, and the class
        - images: as :meth:`images` of the stored size

        Args and Raises: as :meth:`images`.
        """
        from recordgen.access.decode import Decoder
        from recordgen.access.pairs import Pairs

        return Pairs(self, Decoder(None), task, columns)


def _with_inputs(transform: Callable[[Any], Any], item: Any) -> Any:
    """Return an item with other inputs."""
    return (transform(item[0]), *item[1:]) if isinstance(item, tuple) else transform(item)
