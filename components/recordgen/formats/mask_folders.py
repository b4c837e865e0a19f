"""Images and masks in folders, paired by their names.

    train/images/1.jpg, train/masks/1.png      images/train/1.jpg, labels/train/1.png
    JPEGImages/1.jpg, SegmentationClass/1.png  1.jpg, 1_mask.png

become the picture of the image with its mask. A folder of the path names the split, or a list in
VOC's ``ImageSets/Segmentation`` ("The PASCAL Visual Object Classes Challenge 2012 Development Kit",
section 3.3): images of no list are skipped. The names of classes lie beside the masks
(:mod:`recordgen.formats.mask_classes`), or are VOC's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar

from recordgen.core.dataset.splits import is_ml_use
from recordgen.core.rows.picture import Picture
from recordgen.errors import PayloadError, SourceError
from recordgen.formats.format import Evidence
from recordgen.formats.listing import Listing
from recordgen.formats.mask_classes import MaskClasses, classes_in
from recordgen.formats.pascal_voc import splits_in_sets
from recordgen.formats.pictures import Note, PictureFormat, Problem, notes_about
from recordgen.rejects import RejectCode
from recordgen.tasks import ImageSegmentation

#: Name in ``rows.adjusted``: masks whose white was read as a class.
MASKS_OF_TWO_LEVELS = "masks_of_two_levels"

_IMAGES = ("images", "image", "imgs", "img", "photos", "jpegimages", "rgb", "inputs")
_VOC = "segmentationclass"
_MASKS = (
    *("masks", "mask", "labels", "label", "annotations", "annotation", "segmentations", "gt"),
    *("segmentation", "targets", "groundtruth", "ground_truth", _VOC, "segmentationclasspng"),
)
_EXACT = re.compile(r"\.(png|bmp|tiff?)$", re.IGNORECASE)
_SUFFIX = re.compile(r"[-_](mask|masks|seg|label|labels|gt)$", re.IGNORECASE)

_VOC_SETS = "ImageSets/Segmentation"
_VOC_CLASSES = (
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat"),
    *("chair", "cow", "diningtable", "dog", "horse", "motorbike", "person", "pottedplant"),
    *("sheep", "sofa", "train", "tvmonitor"),
)

_TWO_LEVELS = {"#000000": "background", "#ffffff": "object"}
_PROBED = 5


class MaskFolders(PictureFormat):
    """Folders of images and of masks with the same names."""

    name = "mask_folders"
    tasks: ClassVar = (ImageSegmentation.name,)
    names_files = True

    def detect(self, listing: Listing) -> Evidence | None:
        if listing.only:
            return None
        images = _by_stem(listing)
        pairs = ((mask, found) for mask in _masks(listing) if (found := _images(images, mask)))
        first = next(pairs, None)
        if first is None:
            return None
        mask, [image, *_] = first
        classes = _classes(listing)
        return Evidence(f"{mask} is the mask of {image}", self.tasks[0], classes=classes.names)

    def read(self, listing: Listing, document: str) -> Iterator[Picture | Problem | Note]:
        classes, images = _classes(listing), _by_stem(listing)
        masks = list(_masks(listing))
        sets = splits_in_sets(listing, _VOC_SETS)
        notes: Sequence[tuple[str, str]] = ()
        if not classes.colours and _have_two_levels(listing, masks):
            names = classes.names if len(classes.names) == 2 else list(_TWO_LEVELS.values())
            classes = classes._replace(colours=dict(zip(_TWO_LEVELS, names, strict=True)))
            message = f"the mask is black and white; white was read as the class {names[1]!r}"
            notes = ((MASKS_OF_TWO_LEVELS, message),)
        used = set()
        for line, mask in enumerate(masks, start=1):
            found = _images(images, mask)
            if len(found) != 1:
                yield _unpaired(line, mask, found)
                continue
            [image] = found
            used |= {image, mask}
            splits = next((sets[place] for place in sets if mask.startswith(place)), {})
            stem = posixpath.splitext(posixpath.basename(image))[0]
            if splits and stem not in splits:
                yield Note(line, f"{mask} is in no list of {_VOC_SETS}; it was skipped")
                continue
            yield Picture(
                line,
                image,
                splits.get(stem) or _split(image),
                notes=notes,
                mask=mask,
                colours=classes.colours,
            )
        others = [name for name in listing.images if name not in used and not _is_mask(name)]
        yield from notes_about(others, "images have no mask, and were skipped")


def _classes(listing: Listing) -> MaskClasses:
    """Return the classes that a file names, or those of VOC, whose lists of images are there."""
    found = classes_in(listing)
    is_voc = f"/{_VOC_SETS}/".lower() in "".join(f"/{name}\n" for name in listing.others).lower()
    return found if found.file or not is_voc else MaskClasses(names=_VOC_CLASSES)


def _is_mask(name: str) -> bool:
    """Return whether the name of a file or of one of its folders is that of masks."""
    *folders, base = name.lower().split("/")
    stem = posixpath.splitext(base)[0]
    is_named = _SUFFIX.search(stem) is not None or not set(folders).isdisjoint(_MASKS)
    return is_named and _EXACT.search(base) is not None


def _masks(listing: Listing) -> Iterator[str]:
    return filter(_is_mask, listing.images)


def _by_stem(listing: Listing) -> Mapping[str, Sequence[str]]:
    """Return images that are no masks by their path without the suffix, in small letters."""
    found: dict[str, list[str]] = {}
    for name in listing.images:
        if not _is_mask(name):
            found.setdefault(posixpath.splitext(name)[0].lower(), []).append(name)
    return found


def _images(images: Mapping[str, Sequence[str]], mask: str) -> Sequence[str]:
    """Return the images to which a mask may belong."""
    *folders, base = posixpath.splitext(mask)[0].lower().split("/")
    stems = dict.fromkeys((base, _SUFFIX.sub("", base)))
    at = next((at for at, name in enumerate(folders) if name in _MASKS), None)
    places = [folders]
    if at is not None:
        named = [[*folders[:at], name, *folders[at + 1 :]] for name in _IMAGES]
        places = [*named, [*folders[:at], *folders[at + 1 :]]]
    for stem in stems:
        for place in places:
            if found := images.get("/".join((*place, stem))):
                return found
    return ()


def _unpaired(line: int, mask: str, found: Sequence[str]) -> Problem:
    if not found:
        message = f"there is no image for the mask {mask}"
        return Problem(line, message, mask, RejectCode.MISSING_FILE)
    message = f"the mask {mask} may be that of {' and '.join(found[:2])}; rename or remove one"
    return Problem(line, message, mask, RejectCode.AMBIGUOUS_PATH)


def _split(image: str) -> str | None:
    """Return the word for the split among the folders of an image."""
    return next(filter(is_ml_use, posixpath.dirname(image).split("/")), None)


def _have_two_levels(listing: Listing, masks: Sequence[str]) -> bool:
    """Return whether the first masks are black and white: 255 is a class, not void."""
    from recordgen.tasks.image_segmentation.stored_masks import gray_levels

    seen: set[int] = set()
    for name in islice(masks, _PROBED):
        try:
            with listing.open(name) as file:
                seen |= gray_levels(file.read())
        except (PayloadError, SourceError):
            continue  # making the example reports the reason
    return seen in ({255}, {0, 255})
