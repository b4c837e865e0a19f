"""The base of all image tasks: the payload is an image file."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from recordgen import features
from recordgen.core.dataset.counts import record_line
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts import IMAGES, MEASURES
from recordgen.core.records.example import FeatureValue, parse_example, serialize_example
from recordgen.core.rows.planned import PlannedRow
from recordgen.core.rows.row import Adjustments
from recordgen.core.settings import PayloadSettings
from recordgen.core.task.annotation import RowContent
from recordgen.core.task.built import HAS, BuiltExample, psnr_changes
from recordgen.core.task.examples import each_row
from recordgen.core.task.task import Task
from recordgen.tasks.lines import stored_uri, uri_in

if TYPE_CHECKING:
    from recordgen.payloads.reencoding import CheckedImage


class StoredImage(NamedTuple):
    """The image of a row, and what its example is made with.

    Attributes:
        image: the image as it is stored.
        others: the row's payloads after its image.
        settings: how to check and change payloads.
        changes: counts changes, see :class:`recordgen.core.task.built.BuiltBatch`.
    """

    image: CheckedImage
    others: Sequence[bytes]
    vocabulary: Vocabulary
    settings: PayloadSettings
    changes: defaultdict[str, int]


class Described(NamedTuple):
    """What an example holds besides its image.

    Attributes:
        annotation: the annotation of the stored image, or None.
        digested: what it adds to the shard's digest besides image, uri and annotation.
    """

    annotation: str | None = None
    labels: Sequence[str] = ()
    features: Mapping[str, FeatureValue] = {}
    digested: bytes = b""


_NOT_DESCRIBED = Described()


class ImageTask(Task):
    """A task whose payloads are images."""

    kind = "image"
    noun = "image"
    batch_rows = 16
    facts: ClassVar[Collection[str]] = (IMAGES, MEASURES)
    uri_key = "imageGcsUri"
    csv_parser = "recordgen.formats.automl_csv:LineParser"
    reading = "recordgen.tasks.images.reading:IMAGES"
    pairing: ClassVar[str | None] = "recordgen.tasks.pairing:images"

    def from_record(self, record: Mapping[str, Any], adjusted: Adjustments) -> Sequence[RowContent]:
        uri = uri_in(record, self.uri_key, self.noun)
        return [RowContent(uri, self.from_json(record, adjusted))]

    @abstractmethod
    def from_json(self, record: Mapping[str, Any], adjusted: Adjustments) -> str | None:
        """Return the annotation in a line of a JSONL file.

        Args and Raises: as :meth:`from_fields`; ``record`` is the parsed line.
        """

    @classmethod
    @abstractmethod
    def from_features(cls, values: Mapping[str, Sequence[Any]]) -> str | None:
        """Return the exact annotation from which features were made, or None."""

    @abstractmethod
    def described(self, annotation: str, stored: StoredImage) -> Described:
        """Return what the annotation of the original payload adds to its example.

        It is decoded here, and only here: the stored image may be turned, cropped or padded.

        Raises: PayloadError: the annotation does not fit this image.
        """

    @each_row
    def make(
        self,
        row: PlannedRow,
        payloads: Sequence[bytes],
        vocabulary: Vocabulary,
        settings: PayloadSettings,
    ) -> BuiltExample:
        # Imported here: reading import files does not need the decoders.
        from recordgen.payloads.check import check_image
        from recordgen.payloads.opening import out_of_memory

        data, *others = payloads
        image = check_image(data, settings, row.uri)
        changes = defaultdict(int, psnr_changes(image.psnr))
        said = _NOT_DESCRIBED
        if row.annotation is not None:
            stored = StoredImage(image, others, vocabulary, settings, changes)
            try:
                said = self.described(row.annotation, stored)
            except MemoryError as exc:
                raise out_of_memory() from exc
        for name in said.features:
            if name in features.OBJECTS:
                changes[f"{HAS}{name}"] += 1
        sha256 = hashlib.sha256(image.data)
        hexdigest = sha256.hexdigest()
        is_raw = image.format == features.RAW
        record = serialize_example(
            {
                features.IMAGE_ENCODED: image.data,
                features.IMAGE_FORMAT: image.format.encode(),
                features.IMAGE_HEIGHT: image.height,
                features.IMAGE_WIDTH: image.width,
                features.IMAGE_SOURCE_ID: row.uri.encode(),
                features.IMAGE_SHA256: hexdigest.encode(),
                **({features.IMAGE_CHANNELS: features.RAW_CHANNELS} if is_raw else {}),
                **said.features,
            }
        )
        return BuiltExample(
            record,
            record_line(hexdigest, said.annotation, row.uri) + said.digested,
            said.labels,
            image.reencoded,
            image.note,
            sha256.digest(),
            image.small,
            changes=changes,
        )

    @classmethod
    def digested(cls, record: bytes) -> bytes:
        values: Mapping[str, Any] = parse_example(record)
        names = features.IMAGE_SHA256, features.IMAGE_SOURCE_ID
        [sha256], [uri] = (values.get(name, [b""]) for name in names)
        for image in values.get(features.IMAGE_ENCODED, ()):
            if hashlib.sha256(image).hexdigest() != sha256.decode():
                raise ValueError(f"the image of {stored_uri(uri)} was changed")
        return record_line(sha256.decode(), cls.from_features(values), stored_uri(uri))
