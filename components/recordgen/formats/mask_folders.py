"""Images and masks in folders, paired by their paths apart from words for images and masks.

    train/images/1.jpg, train/masks/1.png      images/train/1.jpg, labels/train/1.png
    JPEGImages/1.jpg, SegmentationClass/1.png  1.jpg, 1_mask.png

become the picture of the image with its mask. A folder of the path names the split, or a list in
VOC's ``ImageSets/Segmentation`` ("The PASCAL Visual Object Classes Challenge 2012 Development Kit",
section 3.3): images of no list are skipped. The names of classes are VOC's, or beside the masks::

    classes.txt, class_names.txt, labels.txt   a name in each line, from number 0
    _classes.csv (Roboflow)                    Pixel Value, Class → 1, cat
    class_dict.csv (CamVid)                    name,r,g,b → cat,255,0,0
    labelmap.txt (CVAT, Datumaro)              cat:255,0,0::
    label_colors.txt (CamVid, Synthia)         255 0 0 cat
    dataset_meta.json (Datumaro)               label_map and segmentation_colors
"""

from __future__ import annotations

import csv
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, filterfalse, islice
from typing import ClassVar, NamedTuple

from recordgen.errors import PayloadError, SourceError
from recordgen.formats.field_kinds import known_words, words_by_kind
from recordgen.formats.folder_names import ANNOTATIONS, MASKS, NO_MASKS, layout_of_pairs, refusal
from recordgen.formats.format import Evidence
from recordgen.formats.json_values import items, json_value, mapping
from recordgen.formats.listing import Listing, grouped
from recordgen.formats.pascal_voc import listed_split, splits_in_sets
from recordgen.formats.pictures import Note, PictureFormat, Problem, notes_about
from recordgen.formats.split_names import split_in_name
from recordgen.rejects import RejectCode
from recordgen.subjects.picture import Picture
from recordgen.tables.csv_fields import read_fields
from recordgen.tables.path_layout import PathLayout
from recordgen.tasks import ImageSegmentation

#: Name in ``rows.adjusted``: masks whose white was read as a class.
MASKS_OF_TWO_LEVELS = "masks_of_two_levels"

_NO_KEYS = MASKS | known_words("images") | {"photos", "rgb", "inputs"}
_EXACT = re.compile(r"\.(png|bmp|tiff?)$", re.IGNORECASE)
_SUFFIX = re.compile(r"[-_](mask|masks|seg|label|labels|gt)$", re.IGNORECASE)
_COUNTED = re.compile(r"(.+)[-_]\d+\.\w+")

_VOC_SETS = "ImageSets/Segmentation"
_TWO_LEVELS = {"#000000": "background", "#ffffff": "object"}
_PROBED = 5
#: Gray pictures of so few levels may be masks of classes.
_MOST_LEVELS = 64
# More kinds of pictures with the same numbers are rather classes.
_MOST_KINDS = 6
_DIGITS = re.compile(r"\d+")


class MaskFolders(PictureFormat):
    """Folders of images and of masks with the same names."""

    name = "mask_folders"
    own_lists = _VOC_SETS
    tasks: ClassVar = (ImageSegmentation.name,)
    names_files = True

    def detect(self, listing: Listing) -> Evidence | None:
        images, masks = _images_and_masks(listing)
        pairs = [(mask, found) for mask in masks if (found := images.get(_key(mask)))]
        if not pairs or len(pairs) * 2 < len(masks):
            return None
        marked = {stem for mask in masks if _SUFFIX.search(stem := posixpath.splitext(mask)[0])}
        counted = (each[1] for name in listing.images if (each := _COUNTED.fullmatch(name)))
        is_one = len({*map(_key, masks)}) == len(masks) and marked.isdisjoint(counted)
        if not is_one or _have_rivals(listing, images, pairs):
            reason = f"{pairs[0][0]} may be one of several masks of {pairs[0][1][0]}"
            reason += "; keep one mask for each image, or say with --layout which it is"
            layout = layout_of_pairs([some[0] for _, some in pairs], masks) if is_one else ""
            raise refusal(listing, reason, layout)
        mask, [image, *_] = pairs[0]
        classes = mask_classes(listing).names
        return Evidence(f"{mask} is the mask of {image}", self.tasks[0], classes=classes)

    def read(self, listing: Listing, document: str) -> Iterator[Picture | Problem | Note]:
        images, masks = _images_and_masks(listing)
        colours, notes = colours_of(listing, masks)
        sets = splits_in_sets(listing, _VOC_SETS)
        paired = (mask for mask in masks if _key(mask) in images)
        used, usual = set[str](), {*chain.from_iterable(map(NO_MASKS.findall, paired))}
        for line, mask in enumerate(masks, start=1):
            found = images.get(_key(mask), ())
            if not found:
                message = f"there is no image for the mask {mask}"
                lost = Problem(line, message, mask, RejectCode.MISSING_FILE)
                # A word that no mask of an image has: colours of others.
                yield lost if usual.issuperset(NO_MASKS.findall(mask)) else Note(line, message)
                continue
            if len(found) > 1:
                message = f"the mask {mask} may be that of {' and '.join(found[:2])}; remove one"
                yield Problem(line, message, mask, RejectCode.AMBIGUOUS_PATH)
                continue
            [image] = found
            used |= {image, mask}
            split = listed_split(sets, image)
            if split == "":
                yield Note(line, f"{mask} is in no list of {_VOC_SETS}; it was skipped")
                continue
            yield Picture(line, image, split, notes=notes, mask=mask, colours=colours)
        others = [name for some in images.values() for name in some if name not in used]
        yield from notes_about(others, "images have no mask, and were skipped")


def colours_of(
    listing: Listing, masks: Sequence[str]
) -> tuple[Mapping[str, str], Sequence[tuple[str, str]]]:
    """Return the class of each colour of masks, and notes about each of them.

    No colours mean that pixels are the numbers of classes.
    """
    classes = mask_classes(listing)
    # White is a class, not void.
    if classes.colours or _levels_in(listing, masks) not in ({255}, {0, 255}):
        return classes.colours, ()
    names = classes.names if len(classes.names) == 2 else list(_TWO_LEVELS.values())
    message = f"the mask is black and white; white was read as the class {names[1]!r}"
    return dict(zip(_TWO_LEVELS, names, strict=True)), ((MASKS_OF_TWO_LEVELS, message),)


def _is_mask(name: str) -> bool:
    """Return whether the name of a file or of one of its folders is that of masks."""
    *folders, base = name.lower().split("/")
    stem = posixpath.splitext(base)[0]
    is_named = _SUFFIX.search(stem) is not None or not MASKS.isdisjoint(folders)
    return is_named and _EXACT.search(base) is not None


def _key(name: str) -> str:
    """Return a path without its suffix, and without words for images and masks, in small letters.

    It is that of an image and of its mask: ``train/images/1.jpg``, ``train/masks/1_mask.png``.
    """
    *folders, base = name.lower().split("/")
    stem = _SUFFIX.sub("", posixpath.splitext(base)[0])
    return "/".join([*(each for each in folders if each not in _NO_KEYS), stem])


def _images_and_masks(listing: Listing) -> tuple[Mapping[str, Sequence[str]], Sequence[str]]:
    """Return the images that are no masks, by their keys, and the masks."""
    masks = [*filter(_is_mask, listing.images)]
    return grouped(filterfalse(_is_mask, listing.images), _key), masks


def _have_rivals(
    listing: Listing,
    images: Mapping[str, Sequence[str]],
    pairs: Sequence[tuple[str, Sequence[str]]],
) -> bool:
    """Return whether images in folders without a mask look like masks of those that have one."""
    paired = {some[0]: posixpath.basename(_key(some[0])) for _, some in pairs}
    folders = {*map(posixpath.dirname, paired)}
    stems = {(_splits(name), stem) for name, stem in paired.items()}
    rivals = [
        name
        for key, [name, *_] in images.items()
        if (_splits(name), posixpath.basename(key)) in stems
        if posixpath.dirname(name) not in folders
        if ANNOTATIONS.isdisjoint(name.lower().split("/"))
    ]
    levels = _levels_in(listing, rivals)
    return -1 not in levels and 0 < len(levels) <= _MOST_LEVELS


def _splits(name: str) -> Set[str | None]:
    """Return the splits that the folders of a file name."""
    return frozenset(map(split_in_name, name.split("/")[:-1])) - {None}


def _levels_in(listing: Listing, masks: Iterable[str]) -> Set[int]:
    """Return the gray levels of the first of some images; -1 if one of them has colours."""
    from recordgen.tasks.image_segmentation.stored_masks import gray_levels

    seen: set[int] = set()
    for name in islice(masks, _PROBED):
        try:
            with listing.open(name) as file:
                seen |= gray_levels(file.read())
        except (PayloadError, SourceError):
            continue  # making the example reports the reason
    return seen


_LISTS = ("classes.txt", "class_names.txt", "labels.txt")
_NUMBERED, _COLOURED, _LABELMAP = "_classes.csv", "class_dict.csv", "labelmap.txt"
_COLOUR_FIRST, _META = "label_colors.txt", "dataset_meta.json"
_FILES = (*_LISTS, _NUMBERED, _COLOURED, _LABELMAP, _COLOUR_FIRST, _META)


def of_same_numbers(
    kinds: Mapping[str, str], numbered: Callable[[str], str]
) -> Mapping[str, Sequence[str]]:
    """Return the files of a few kinds by number, if most numbers are those of each; else none.

    ``kinds`` has the kind of each file, and ``numbered`` returns the text that ends in its number.
    Files whose numbers are not in each kind are left out.
    """
    found = {name: _DIGITS.findall(numbered(name)) for name in kinds}
    number = {name: int(each[-1]) for name, each in found.items() if each}
    if len(number) < len(kinds) or not 1 < len({*kinds.values()}) <= _MOST_KINDS:
        return {}
    files = grouped(sorted(number, key=number.__getitem__), kinds.__getitem__)
    common = set.intersection(*({*map(number.__getitem__, some)} for some in files.values()))
    same = {kind: [it for it in some if number[it] in common] for kind, some in files.items()}
    counts = [(len(same[kind]), len(some)) for kind, some in files.items()]
    are_most = all(one == len(common) > count / 2 for one, count in counts)
    return same if len(common) > 1 and are_most else {}


def masks_of_others(listing: Listing, folders: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the files of the only class whose first ones have few gray levels, as masks have."""
    levels = {label: _levels_in(listing, some) for label, some in folders.items()}
    few = [label for label, found in levels.items() if 0 < len(found - {-1}) <= _MOST_LEVELS]
    gray = [label for label in few if -1 not in levels[label]]
    return folders[gray[0]] if len(gray) == 1 else ()


def may_be_masks(listing: Listing, layout: str) -> bool:
    """Return whether the second file of a layout's first pair may be the mask of the first one.

    It is no copy, and the first one has many gray levels, or colours, unless they are unknown.
    """
    files = PathLayout.of(layout).matches(listing.images).files
    pair = next((it.path, *it.others) for it in files if it.others)
    levels = _levels_in(listing, pair[:1])
    is_mask = -1 not in levels and 0 < len(levels) <= _MOST_LEVELS
    return not is_mask and (not levels or len({*map(listing.head, pair)}) > 1)


class MaskClasses(NamedTuple):
    """The classes of masks.

    Attributes:
        names: their names, by number.
        colours: the class of each colour, such as ``#ff0000``; empty if pixels are numbers.
    """

    names: Sequence[str] = ()
    colours: Mapping[str, str] = {}


def mask_classes(listing: Listing) -> MaskClasses:
    """Return the classes that a file below a folder names; the outermost one counts.

    Without one, they are those of VOC if its lists of images are there.

    Raises: SourceError: a line of it cannot be used.
    """
    for name in sorted(listing.others, key=lambda name: (name.count("/"), name)):
        base = posixpath.basename(name)
        if base not in _FILES:
            continue
        text = listing.head(name).decode("utf-8-sig", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        try:
            return _parsed(base, lines)
        except (ValueError, csv.Error) as exc:
            raise SourceError(f"{listing.root}{name}: {exc}") from None
    is_voc = any(f"/{_VOC_SETS}/".lower() in f"/{name}".lower() for name in listing.others)
    return MaskClasses(words_by_kind()["classes_of_voc"] if is_voc else ())


def _parsed(base: str, lines: Sequence[str]) -> MaskClasses:
    if base in _LISTS:
        return MaskClasses(lines)
    if base == _NUMBERED:
        numbers = {int(number): label.strip() for number, label in read_fields(lines[1:])}
        if sorted(numbers) != list(range(len(numbers))):
            raise ValueError(f"the numbers of classes must be 0, 1, … (got {sorted(numbers)})")
        return MaskClasses([numbers[at] for at in range(len(numbers))])
    if base == _COLOURED:
        rows = [(label, rest) for label, *rest in read_fields(lines[1:])]
    elif base == _META:
        meta = mapping(json_value("\n".join(lines)), base)
        labels = [str(label) for label in mapping(meta.get("label_map"), "label_map").values()]
        levels = items(meta.get("segmentation_colors"), "segmentation_colors")
        if not levels:
            return MaskClasses(labels)
        rows = list(zip(labels, ([*items(each, "a colour")] for each in levels), strict=True))
    elif base == _COLOUR_FIRST:
        rows = [(label, colour) for *colour, label in (line.split(None, 3) for line in lines)]
    else:
        parts = [line.split(":") for line in lines if not line.startswith("#")]
        rows = [(label, colour.split(",")) for label, colour, *_ in parts]
    colours = {_colour(levels): label.strip() for label, levels in rows}
    return MaskClasses(list(dict.fromkeys(colours.values())), colours)


def _colour(levels: Iterable[str]) -> str:
    """Return a colour as ``#ff0000``. Raises: ValueError: these are not its three levels."""
    numbers = [int(level) for level in levels]
    if len(numbers) != 3 or not all(0 <= number <= 255 for number in numbers):
        raise ValueError(f"a colour must have red, green and blue from 0 to 255 (got {numbers})")
    return "#" + "".join(f"{number:02x}" for number in numbers)
