"""Pascal VOC: an XML document for each image.

    Annotations/a.xml  <annotation><filename>a.jpg</filename><size>…</size>
                       <object><name>dog</name><bndbox><xmin>10</xmin>…</bndbox></object></annotation>
    JPEGImages/a.jpg

becomes the picture ``JPEGImages/a.jpg`` with the box of a dog, in pixels. Rules: "The PASCAL Visual
Object Classes Challenge 2012 Development Kit", section 3. Only documents of the challenge itself
count pixels from 1; other programs write the same tags with pixels from 0.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import ClassVar
from xml.etree.ElementTree import Element

from recordgen.core.dataset.splits import word_in_folders
from recordgen.core.limits import VOC_BYTES
from recordgen.errors import SourceError
from recordgen.features import DIFFICULT, OCCLUDED, TRUNCATED
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.formats.format import Evidence
from recordgen.formats.listing import HEAD_BYTES, Listing
from recordgen.formats.pictures import Note, PictureFormat, Pictures, Problem, notes_about, size_of
from recordgen.formats.xml_elements import parse
from recordgen.messages import listed
from recordgen.rejects import RejectCode
from recordgen.subjects.details import Details, flagged
from recordgen.subjects.picture import Corners, Marked, Picture
from recordgen.tasks import ObjectDetection

#: Name in ``rows.adjusted``: documents whose ``<filename>`` is that of another image.
FILENAME_DIFFERS = "filename_differs"

#: Name in ``rows.adjusted``: images whose corners counted pixels from 1.
VOC_ONE_BASED = "voc_one_based"

# Documents of the challenge name it here.
_CHALLENGE = re.compile(r"VOC20\d\d")
_ROOT = re.compile(rb"<annotation[\s>]")
_FLAGS = (DIFFICULT, TRUNCATED, OCCLUDED)
# Parts of an <annotation> that describe the image; others with parts of their own are objects.
_ABOUT_IMAGE = frozenset({"source", "owner", "size"})
# Programs write all of these for a flag that is not set.
_UNSET = frozenset({"", "0", "false", "no", "none", "unspecified"})
# Only the first documents are looked at before the run begins.
_PROBED = 3


class PascalVoc(PictureFormat):
    """Pascal VOC, as the challenge, LabelImg, Roboflow and others write it."""

    name = "pascal_voc"
    own_lists = "ImageSets/Main"
    tasks: ClassVar = (ObjectDetection.name,)
    names_files = True
    in_pixels = True
    has_sizes = True

    def detect(self, listing: Listing) -> Evidence | None:
        documents = listing.candidates(".xml")
        # Other XML may lie beside the images: documents with an image of their name come first.
        documents = sorted(documents, key=lambda name: not _stem_image(listing, name))[:_PROBED]
        found = [name for name in documents if _ROOT.search(listing.head(name)[:1024])]
        if not found:
            return None
        reason = f"{found[0]} is the <annotation> of an image"
        return Evidence(reason, self.tasks[0], found if listing.only else ("",))

    def read(self, listing: Listing, document: str) -> Pictures:
        sets = splits_in_sets(listing, self.own_lists)
        used = set()
        for line, name in enumerate(listing.candidates(".xml"), start=1):
            item = picture_of(listing, line, name)
            if item is None:
                yield Note(line, f"{name} is no <annotation>; it was skipped")
                continue
            if isinstance(item, Picture):
                split = listed_split(sets, name)
                if split == "":
                    yield Note(line, f"{name} is in no list of ImageSets/Main; it was skipped")
                    continue
                item = item._replace(split=split, document=name)
                used.add(item.uri)
            yield item
        others = [] if listing.only else [name for name in listing.images if name not in used]
        yield from notes_about(others, "images have no usable XML, and were skipped")


def splits_in_sets(listing: Listing, sets: str) -> Mapping[str, Mapping[str, str]]:
    """Return for each folder with the folder ``sets`` of VOC the splits in its lists.

    ``{"VOC2007/": {"000005": "train"}}``. Inner folders come before the outer ones.
    """
    lists: dict[str, dict[str, str]] = {}
    for name in listing.others:
        place, base = posixpath.split(name)
        if f"/{place}".endswith(f"/{sets}") and base.endswith(".txt"):
            lists.setdefault(place.removesuffix(sets), {})[base] = name
    return {place: _splits(listing, lists[place]) for place in sorted(lists, reverse=True)}


def listed_split(sets: Mapping[str, Mapping[str, str]], name: str) -> str | None:
    """Return the split of a file in :func:`splits_in_sets`; "" in none, None without lists."""
    splits = next((sets[place] for place in sets if name.startswith(place)), {})
    return splits.get(posixpath.splitext(posixpath.basename(name))[0], "") if splits else None


def _splits(listing: Listing, lists: Mapping[str, str]) -> Mapping[str, str]:
    """Return the split of each image by its stem, from lists by their file name."""
    both = "train.txt" in lists or "val.txt" in lists
    words = ("train", "val", "test") if both else ("trainval", "test")
    found: dict[str, str] = {}
    for word in words:
        if (name := lists.get(f"{word}.txt")) is None:
            continue
        for _, line in listing.lines(name):
            stem = IMAGE_SUFFIX.sub("", line)
            split = "train" if word == "trainval" else word
            if stem and found.setdefault(stem, split) != split:
                twice = f"{stem} is also in the list of {found[stem]}; leave it in one"
                raise SourceError(f"{listing.root}{name}: {twice}")
    return found


def picture_of(
    listing: Listing, line: int, name: str, image: str | None = None
) -> Picture | Problem | None:
    """Return the picture of a document, its problem, or None if it is no annotation.

    ``image``: the image that it describes; None if its own name or the document says it.
    """
    try:
        data = listing.head(name)
        root = parse(data if len(data) < HEAD_BYTES else listing.read(name, VOC_BYTES.most))
    except ValueError as exc:
        return Problem(line, f"{name}: this XML cannot be read: {exc}", _stem_image(listing, name))
    if root.tag != "annotation":
        return None
    found = image or _image(listing, line, name, root)
    if isinstance(found, Problem):
        return found
    try:
        marked = list(_objects(root))
    except ValueError as exc:
        return Problem(line, f"{name}: {exc}", found)
    notes = []
    written = _text(root, "filename")
    if written and _stem_of(written) != _stem_of(found):
        message = f"{name}: <filename> is {written:.80}; {found}, of the document's name, was taken"
        notes.append((FILENAME_DIFFERS, message))
    said = f"{_text(root, 'folder')} {_text(root.find('source'), 'database')}"
    if marked and _CHALLENGE.search(said):
        marked = [each._replace(corners=_from_zero(each.corners)) for each in marked]
        notes.append((VOC_ONE_BASED, f"{name}: corners count pixels from 1, and were moved"))
    size = size_of(*(_text(root.find("size"), side) for side in ("width", "height")))
    return Picture(line, found, None, size, marked, notes=notes)


def _stem_of(path: str) -> str:
    """Return the file name of a path, with any separators, without the suffix of an image."""
    return IMAGE_SUFFIX.sub("", posixpath.basename(path.replace("\\", "/")))


def _image(listing: Listing, line: int, name: str, root: Element) -> str | Problem:
    """Return the image of a document: of its own name, or else the one that it names."""
    said = _text(root, "filename")
    if own := _stem_image(listing, name, posixpath.splitext(said)[1]):
        return own
    folder = posixpath.dirname(name)
    above = posixpath.dirname(folder)
    places = (folder, posixpath.join(above, "JPEGImages"), posixpath.join(above, "images"), above)
    ends = ("",) if IMAGE_SUFFIX.search(said) else ("", ".jpg", ".JPEG", ".png")
    split = word_in_folders(name)
    message = f"{name}: there is no image of this name, and none named {said or '(nothing)'}"
    for end in ends if said else ():
        found = listing.image_at(f"{said}{end}", *places, split=split)
        if isinstance(found, str):
            return found
        if found:
            message = f"{name}: {said} may be {' and '.join(found[:2])}; pass the folder of one"
            return Problem(line, message, said, RejectCode.AMBIGUOUS_PATH)
    return Problem(line, message, said, RejectCode.MISSING_FILE)


def _stem_image(listing: Listing, name: str, suffix: str = "") -> str:
    """Return the image beside a document, or in its twin folder, with the same stem.

    The suffix decides between an image and its mask.
    """
    folder, base = posixpath.split(posixpath.splitext(name)[0])
    above = posixpath.dirname(folder)
    for place in (folder, posixpath.join(above, "JPEGImages"), posixpath.join(above, "images")):
        if same := listing.tree.by_stem.get(posixpath.join(place, base)):
            return next((image for image in same if suffix and image.endswith(suffix)), same[0])
    return ""


def _objects(root: Element) -> Iterator[Marked]:
    """Yield the objects. Raises: ValueError: one has no name or no box, or is no ``<object>``."""
    for part in root:
        if part.tag != "object" and part.tag not in _ABOUT_IMAGE and len(part):
            expected = "an <object> with a <name> and a <bndbox> directly in <annotation>"
            raise ValueError(f"<{part.tag}> may hold objects, and is not read; expected {expected}")
    for number, item in enumerate(root.findall("object"), start=1):
        label = _text(item, "name")
        box = item.find("bndbox")  # parts of an object have boxes of their own
        if not label or box is None:
            tags = listed([child.tag for child in item], str)
            raise ValueError(f"object {number} needs a <name> and a <bndbox> (got {tags})")
        texts = [_text(box, tag) for tag in ("xmin", "ymin", "xmax", "ymax")]
        try:
            xmin, ymin, xmax, ymax = map(float, texts)
        except ValueError:
            raise ValueError(f"object {number}: a corner is no number (got {texts})") from None
        flags = {name: _text(item, name).lower() not in _UNSET for name in _FLAGS}
        yield Marked(label, (xmin, ymin, xmax, ymax), Details(flagged(flags)))


def _from_zero(corners: Corners) -> Corners:
    """Return corners that count from 0 and end behind the last pixel.

    ``(1, 1, 8, 8)`` → ``(0, 0, 8, 8)``
    """
    xmin, ymin, xmax, ymax = corners
    return xmin - 1, ymin - 1, xmax, ymax


def _text(element: Element | None, tag: str) -> str:
    """Return the text of a direct child, or ""."""
    found = None if element is None else element.find(tag)
    return "" if found is None or found.text is None else found.text.strip()
