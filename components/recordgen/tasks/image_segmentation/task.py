"""Image segmentation, a mask for each image: ``[ML_USE],PATH,[MASK]``.

The pixels of a mask are class numbers. In Vertex AI's JSON Lines they are colours, whose classes
the line names, with red, green and blue from 0 to 1 (schema ``image_segmentation_io_format``)::

    TRAIN,images/1.jpg,masks/1.png
    {"imageGcsUri": "images/1.jpg", "segmentationAnnotation": {"categoryMaskGcsUri": "masks/1.png",
     "annotationSpecColors": [{"color": {"red": 1.0}, "displayName": "cat"}]}}
    {"imageGcsUri": "images/2.jpg", "polygonAnnotations": [{"displayName": "cat",
     "vertexes": [{"x": 0.1, "y": 0.1}, {"x": 0.4, "y": 0.1}, {"x": 0.4, "y": 0.3}]}]}

become ``image/segmentation/class/encoded``, a gray PNG, see
:mod:`recordgen.subjects.masks`, and ``image/segmentation/class/text`` and ``…/label``,
the classes that have pixels. The annotation is
:class:`MaskRow`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from recordgen import features
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts import MASKS
from recordgen.core.records.example import FeatureValue, parse_example
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import (
    RowContent,
    bad_annotation,
    check_label,
    check_uri,
    printable,
)
from recordgen.core.task.task import PARTS, Task
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.rejects import RejectCode
from recordgen.subjects.details import Details, Polygons
from recordgen.subjects.masks import BACKGROUND
from recordgen.subjects.picture import Marked, Picture, is_number
from recordgen.tables.roles import MASK_COLUMNS
from recordgen.tasks.images.task import Described, ImageTask, StoredImage
from recordgen.tasks.lines import display_name, either, list_in, stored_uri, too_many_fields

# The key of an exported line; published lines for the import have several names for the uri.
_EXPORTED = "maskAnnotation"
_POLYGONS = "polygonAnnotations"
_URI_KEYS = ("categoryMaskGcsUri", "categoryMaskUri", "maskGcsUri")
_COLOURS_KEY = "annotationSpecColors"
_NAME_KEYS = ("displayName", "annotationSpecDisplayName")


BLACK = "#000000"

_COLOUR = re.compile(r"#[0-9a-f]{6}")


@dataclass(frozen=True)
class ImageSegmentation(ImageTask):
    """Image segmentation with at most one mask per image.

    Attributes:
        orientation: the picture that masks are drawn on, ``stored`` or ``upright``, if the shape of
            a mask does not show it; see ``box_orientation`` of
            :class:`recordgen.options.ConvertOptions`.
    """

    name = "image_segmentation"
    expected = "[ML_USE],PATH,[MASK]"
    columns: ClassVar = {"mask": MASK_COLUMNS}
    json_keys = ("segmentationAnnotation", _EXPORTED, _POLYGONS)
    features: ClassVar = features.IMAGE_SEGMENTATION
    facts = (*ImageTask.facts, MASKS)
    labelling = PARTS
    details_noun = "masks"
    pairing = "recordgen.tasks.pairing:masks"
    trainer = "recordgen.tasks.image_segmentation.training:ImageSegmenter"
    measure = "recordgen.training.measures:MaskAccumulator"

    orientation: str = "stored"

    @classmethod
    def of(cls, options: ConvertOptions) -> Task:
        return cls(options.box_orientation)

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        if len(fields) > 1:
            raise too_many_fields(
                f"expected {self.expected}, one mask per image (got {len(fields)} fields after "
                f"the path)"
            )
        return MaskRow(check_uri(fields[0])).to_json() if fields and fields[0] else None

    def from_json(self, record: Mapping[str, Any], adjusted: Adjustments) -> str | None:
        said = either(record, self.json_keys)
        if said is None or said == []:
            return None
        if said is record.get(_POLYGONS):
            return MaskRow("", drawn=list(map(_polygon, list_in(record, _POLYGONS)))).to_json()
        uri = either(said, _URI_KEYS) if isinstance(said, Mapping) else None
        if not isinstance(uri, str) or not uri.strip():
            raise bad_annotation(
                f"{self.json_keys[0]} must be an object with {_URI_KEYS[0]}, the path or URL of a "
                f"mask (got {said!r:.80})"
            )
        colours = dict(_colours_in(said.get(_COLOURS_KEY)))
        return MaskRow(check_uri(uri.strip()), with_background(colours)).to_json()

    def from_picture(self, picture: Picture, adjusted: Adjustments) -> RowContent:
        uri = check_uri(picture.uri)
        if picture.mask is None and not picture.objects:
            return RowContent(uri, None)
        if not picture.mask:
            width, height = picture.size or (1, 1)
            drawn = [_drawn(each, width, height) for each in picture.objects]
            return RowContent(uri, MaskRow("", drawn=drawn).to_json())
        colours = {colour: check_label(name) for colour, name in picture.colours.items()}
        mask = MaskRow(check_uri(picture.mask), with_background(colours))
        return RowContent(uri, mask.to_json())

    def stored_uris(
        self, uris: Sequence[str], annotations: Sequence[str | None]
    ) -> Sequence[Sequence[str]]:
        return [(uri, *_mask_uris(text)) for uri, text in zip(uris, annotations, strict=True)]

    def with_uris(self, annotation: str | None, uris: Mapping[str, str]) -> str | None:
        if annotation is None:
            return None
        mask = MaskRow.from_json(annotation)
        return mask._replace(uri=uris.get(mask.uri, mask.uri)).to_json()

    def labels(self, annotation: str) -> Sequence[str]:
        """Return the classes that a row names; only the pixels show which of them the mask has."""
        row = MaskRow.from_json(annotation)
        named = [label for label, _ in row.drawn or ()]
        ground = [] if row.drawn is None else [BACKGROUND]
        return list(dict.fromkeys((*row.colours.values(), *ground, *named)))

    def details(self, annotation: str) -> Sequence[str]:
        return (self.shown(annotation),)

    def shown(self, annotation: str) -> str:
        row = MaskRow.from_json(annotation)
        return row.uri if row.drawn is None else f"{len(row.drawn)} objects"

    def preview(self, uri: str, annotation: str | None) -> tuple[str, str | None]:
        return uri, "" if annotation is None else self.shown(annotation)

    def nearly_agree(self, one: str, other: str) -> bool:
        """Return True: copies of an image may each have a file with the same mask."""
        return True

    def described(self, annotation: str, stored: StoredImage) -> Described:
        # Imported here: reading import files does not need the decoders.
        from recordgen.tasks.image_segmentation.stored_masks import drawn_mask, mask_of

        row, vocabulary = MaskRow.from_json(annotation), stored.vocabulary
        numbers = {colour: vocabulary.index(name) for colour, name in row.colours.items()}
        try:
            if row.drawn is not None:
                drawn = [(vocabulary.index(label), text) for label, text in row.drawn]
                ground = vocabulary.index(BACKGROUND)
                limit = stored.settings.limit
                mask = drawn_mask(drawn, ground, stored.image, self.orientation, limit)
            else:
                [data] = stored.others
                mask = mask_of(data, numbers, stored.image, self.orientation, stored.settings)
            if mask.has_void and not any(mask.numbers) and not _has_names(vocabulary):
                raise PayloadError(
                    RejectCode.BAD_ANNOTATION,
                    "its pixels are black and white, 0 and 255, and 255 is no class; if white is a "
                    "class, write 1 instead, otherwise name the classes: --vocabulary FILE",
                )
            labels = _named(mask.numbers, vocabulary)
        except PayloadError as exc:
            where = f"mask {printable(row.uri)}: " if row.uri else ""
            raise PayloadError(exc.code, f"{where}{exc.message}") from exc
        said: Mapping[str, FeatureValue] = {
            features.IMAGE_MASK_ENCODED: mask.data,
            features.IMAGE_MASK_FORMAT: b"png",
            features.IMAGE_MASK_SOURCE_ID: row.uri.encode(),
            features.IMAGE_MASK_TEXT: [label.encode() for label in labels],
            features.IMAGE_MASK_LABEL: list(mask.numbers),
        }
        return Described(MaskRow(row.uri).to_json(), labels, said, _digested(mask.data))

    @classmethod
    def from_features(cls, values: Mapping[str, Sequence[Any]]) -> str | None:
        for uri in values.get(features.IMAGE_MASK_SOURCE_ID, ()):
            return MaskRow(stored_uri(uri)).to_json()
        return None

    @classmethod
    def digested(cls, record: bytes) -> bytes:
        masks: Sequence[Any] = parse_example(record).get(features.IMAGE_MASK_ENCODED, ())
        return super().digested(record) + b"".join(map(_digested, masks))


def _mask_uris(annotation: str | None) -> Sequence[str]:
    uri = "" if annotation is None else MaskRow.from_json(annotation).uri
    return (uri,) if uri else ()


def _drawn(marked: Marked, width: float, height: float) -> tuple[str, Mapping[str, Any]]:
    """Return the class of an object, and its outline in shares of its image."""
    outline = Details(polygons=marked.details.polygons, mask=marked.details.mask)
    if not outline:
        raise bad_annotation(
            f"the object {marked.label!r} has a box, but no polygon and no mask, so its pixels are "
            f"unknown; use --task object_detection"
        )
    return check_label(marked.label), outline.divided(width, height).to_json()


def _polygon(item: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the class and the outline of a polygon, whose zeros Vertex AI leaves out."""
    label = display_name(item, f"each of {_POLYGONS}", _NAME_KEYS)
    found = item.get("vertexes")
    points = found if isinstance(found, list) else []
    are_points = all(isinstance(point, Mapping) for point in points)
    flat = [point.get(side, 0) for point in points for side in "xy"] if are_points else []
    if len(flat) < 6 or not all(map(is_number, flat)):
        raise bad_annotation(
            f"a polygon needs three or more vertexes with x and y, as shares (got {found!r:.80})"
        )
    return check_label(label), Details(polygons=Polygons.of([flat])).to_json()


def _colours_in(found: Any) -> Iterator[tuple[str, str]]:
    """Yield the colours and classes of Vertex AI's ``annotationSpecColors``."""
    if not isinstance(found, list) or not found:
        raise bad_annotation(f"{_COLOURS_KEY} must be a list of colours (got {found!r:.80})")
    for item in found:
        name = display_name(item, f"each of {_COLOURS_KEY}", _NAME_KEYS)
        colour = item.get("color") or {}
        shares: list[Any] = [None]
        if isinstance(colour, Mapping):
            shares = [colour.get(key, 0) for key in ("red", "green", "blue")]
        if not all(isinstance(share, int | float) and 0 <= share <= 1 for share in shares):
            raise bad_annotation(f"red, green and blue must be from 0 to 1 (got {colour!r:.80})")
        yield "#" + "".join(f"{round(share * 255):02x}" for share in shares), name


def _named(numbers: Sequence[int], vocabulary: Vocabulary) -> Sequence[str]:
    """Return the classes with these numbers. Raises: PayloadError: one has no name."""
    if not _has_names(vocabulary):
        return list(map(str, numbers))
    count = len(vocabulary.names)
    if wrong := [number for number in numbers if number >= count]:
        raise PayloadError(
            RejectCode.BAD_ANNOTATION,
            f"its pixels have the class numbers {', '.join(map(str, wrong[:10]))}, but there are "
            f"{count} classes, 0 to {count - 1}; name the others, or set their pixels to 255, "
            f"which is no class",
        )
    return [vocabulary.names[number] for number in numbers]


def _has_names(vocabulary: Vocabulary) -> bool:
    """Return whether classes have names, or are only numbers."""
    return bool(vocabulary.names) and vocabulary.kind != "integer"


def _digested(mask: bytes) -> bytes:
    return hashlib.sha256(mask).hexdigest().encode()


class MaskRow(NamedTuple):
    """What a row says about the mask of its image.

    As JSON: ``["masks/1.png"]``, or ``["masks/1.png", {"#ff0000": "cat"}]``, or
    ``["", {}, [["cat", {"polygons": [[0.1, 0.1, 0.4, 0.1, 0.4, 0.3]]}]]]``.

    Attributes:
        uri: the mask; empty if objects are drawn instead.
        colours: the class of each colour, such as ``#ff0000``; empty if pixels are class numbers.
        drawn: the class and the outline of each object, in shares of the image, as
            :meth:`recordgen.subjects.details.Details.to_json` returns it; None without.
    """

    uri: str
    colours: Mapping[str, str] = {}
    drawn: Sequence[tuple[str, Mapping[str, Any]]] | None = None

    @classmethod
    def from_json(cls, annotation: str) -> MaskRow:
        """Parse an annotation."""
        return cls(*json.loads(annotation))

    def to_json(self) -> str:
        """Return the annotation."""
        parts: list[Any] = [self.uri, self.colours] if self.colours else [self.uri]
        if self.drawn is not None:
            parts = list(self)
        return json.dumps(parts, ensure_ascii=False)


def with_background(colours: Mapping[str, str]) -> Mapping[str, str]:
    """Return colours in their order, with :data:`BACKGROUND` for black unless it has a class."""
    found = {BLACK: BACKGROUND, **colours} if colours else {}
    if wrong := [colour for colour in found if not _COLOUR.fullmatch(colour)]:
        raise bad_annotation(f"a colour must be like #ff0000 (got {wrong[0]!r:.40})")
    return dict(sorted(found.items()))
