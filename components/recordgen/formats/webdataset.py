"""WebDataset: tars in which consecutive files with the same key are one example.

    train-000000.tar    00000012.jpg     the image
                        00000012.cls     2
                        00000012.json    {"objects": [{"bbox": [10, 20, 30, 40], "category": 2}]}
    classes.txt         a class on each line: cat, dog, horse

becomes the picture ``train-000000.tar/00000012.jpg`` of split train with the label horse, or with
the box of a horse. The image stays in the tar, from which its bytes are read. Rules:
"WebDataset", github.com/webdataset/webdataset: a key ends at the first dot of the file name.
"""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from typing import IO, Any

from recordgen.core.limits import LABEL_LETTERS
from recordgen.core.rows.row import Range
from recordgen.errors import SourceError
from recordgen.formats import objects, pictures
from recordgen.formats.archives import BadMember, Member, tar_members
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.formats.format import Evidence
from recordgen.formats.image_sizes import MAX_HEADER
from recordgen.formats.json_values import json_value
from recordgen.formats.listing import Listing
from recordgen.rejects import RejectCode
from recordgen.subjects.picture import Picture
from recordgen.tables.columns import Table, image_suffix
from recordgen.tables.roles import LABEL_COLUMNS, MASK_COLUMNS, SIZE_ROLES

_LABELS = ("cls", "json", "txt")
_OBJECTS = "objects"
# What a copy of ours repeats: where its files are from, and the classes in a mask.
_SOURCE = "source_id"
_OF_MASKS = ("mask_source_id", "classes")

# Groups that detection reads, and files that one group may have.
_GROUPS_READ = 8
_MAX_PARTS = 64
_MAX_JSON = 4 << 20

# The beginning of a tar without members.
_END = bytes(tarfile.BLOCKSIZE)

# A longer text is a caption.
_WORDS_OF_A_LABEL = 5


@dataclass
class _Group:
    """Consecutive files with one key, by their suffix; or the reason why there is no group."""

    key: str
    parts: dict[str, Member] = field(default_factory=dict)
    problem: BadMember | None = None

    def add(self, suffix: str, member: Member) -> None:
        """Add a file, which no other one may replace."""
        if suffix in self.parts or len(self.parts) == _MAX_PARTS:
            message = f"the key {self.key} has {suffix} twice or too many files"
            self.problem = BadMember(member.name, RejectCode.BAD_ANNOTATION, message)
        self.parts.setdefault(suffix, member)

    @property
    def images(self) -> Sequence[str]:
        """The suffixes of images; those such as ``day.png`` only if there are no others."""
        found = [suffix for suffix in filter(_is_image, self.parts) if suffix != self.mask]
        return [suffix for suffix in found if "." not in suffix] or found

    @property
    def mask(self) -> str:
        """The suffix of the mask, such as ``mask.png``; "" if there is none, or a label."""
        masks = (it for it in self.parts if _is_image(it) and it.partition(".")[0] in MASK_COLUMNS)
        return "" if _LABELS[0] in self.parts else next(masks, "")


@lru_cache
def _is_image(suffix: str) -> bool:
    return IMAGE_SUFFIX.search(f".{suffix}") is not None


class WebDataset(pictures.PictureFormat):
    """Tars with an image and its label for each key."""

    name = "webdataset"
    tasks = objects.TASKS_OF_IMAGES

    def detect(self, listing: Listing) -> Evidence | None:
        found = listing.candidates(".tar")
        first = first_filled(listing, found) if found else ""
        groups: list[_Group] = []
        if found and tar_begins(listing.head(first)):
            with listing.open(first) as file:
                groups = list(islice(_groups(file), _GROUPS_READ))
        group = next((it for it in groups if it.images and it.parts.keys() & set(_LABELS)), None)
        if group is None:
            return None
        listing.check_ranges(first)
        names = objects.names_beside(listing, first, _LABELS[0])
        where = f"{listing.root}{first}"
        with listing.open(first) as file:
            try:
                values = _values(file, group, set())
            except ValueError as exc:
                raise SourceError(f"{where}: {group.key}: {exc}") from exc
        _check_no_caption(where, values, group)
        is_list = isinstance(values.get("label"), list)
        single, several, boxes, masks = self.tasks
        task = boxes if _OBJECTS in values else several if is_list else single
        task = masks if group.mask else task
        return Evidence(f"{first} has {', '.join(group.parts)} for {group.key}", task, found, names)

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        names = objects.names_beside(listing, document, _LABELS[0])
        unread: set[str] = set()
        with listing.open(document) as file:
            make = partial(_picture, file, document, names, unread)
            yield from pictures.examples(enumerate(_groups(file), start=1), make)
        yield from pictures.notes_about(sorted(unread), "keys of JSON beside images are not read")


def json_records(file: IO[bytes]) -> Iterator[Any]:
    """Yield the JSON value of each key of a tar; None if it has an image, or no JSON."""
    return (None if images else value for value, images in placed_records(file))


def placed_records(file: IO[bytes]) -> Iterator[tuple[Any, Mapping[str, Member]]]:
    """Yield the JSON value of each key of a tar, None without one, and its images by suffix."""
    for group in _groups(file):
        images = {suffix: group.parts[suffix] for suffix in filter(_is_image, group.parts)}
        value = None
        if group.problem is None:
            with suppress(KeyError, ValueError):
                value = json_value(_content(file, group.parts["json"], _MAX_JSON))
        yield value, images


def tar_begins(head: bytes) -> bool:
    """Return whether a file with these first bytes is a tar that is not packed."""
    return head[257:262] == b"ustar" or head[: tarfile.BLOCKSIZE] == _END


def first_filled(listing: Listing, names: Sequence[str]) -> str:
    """Return the first of several files that is no empty tar; if all are, the first one."""
    filled = (name for name in names if listing.head(name)[: tarfile.BLOCKSIZE] != _END)
    return next(filled, names[0])


def named_records(listing: Listing, name: str, table: Table) -> Iterator[tuple[int, Any]]:
    """Yield the numbers and values of the keys of a tar, with the places of images."""
    with listing.open(name) as raw:
        for number, (values, images) in enumerate(placed_records(raw)):
            if not isinstance(values, Mapping):
                yield number + 1, values
                continue
            files = {}
            for column in table.images:
                begin = "" if table.only_image else image_suffix(column, "")
                member = next((it for at, it in images.items() if at.startswith(begin)), None)
                if member is not None:
                    place = Range(name, member.offset, member.size)
                    image = objects.StoredFile(None, member.name, place)
                    files[column] = image.in_row(posixpath.basename(name), number)
            yield number + 1, {**values, **files}


def _groups(file: IO[bytes]) -> Iterator[_Group]:
    """Yield the groups of a tar, without hidden files and names without a dot, as the library."""
    group: _Group | None = None
    for member in tar_members(file):
        name = member.name
        if "./" in name or "//" in name:
            name = posixpath.normpath(name)
        base = name.rfind("/") + 1
        dot = name.find(".", base)
        if isinstance(member, Member) and dot <= base:
            continue
        key, suffix = (name[:dot], name[dot + 1 :]) if dot >= 0 else (name, "")
        if group is not None and (group.key != key or isinstance(member, BadMember)):
            yield group
            group = None
        if isinstance(member, BadMember):
            yield _Group(key, problem=member)
        elif name.startswith(("/", "../")):
            message = "its name leads out of the tar; pack it with names below one folder"
            yield _Group(key, problem=BadMember(member.name, RejectCode.NOT_ALLOWED, message))
        else:
            group = group or _Group(key)
            group.add(suffix.lower(), Member(name, member.offset, member.size))
    if group is not None:
        yield group


def _picture(
    file: IO[bytes], document: str, names: Sequence[str], unread: set[str], line: int, group: _Group
) -> Picture:
    """Return the image of a group. Raises: ValueError: it cannot be used."""
    if group.problem is not None:
        name, code, message = group.problem
        raise pictures.ExampleError(message, f"{document}/{name}" if name else "", code)
    images = group.images
    if len(images) != 1:
        message = f"expected one image for the key {group.key} (got {', '.join(group.parts)!s:.80})"
        code = RejectCode.BAD_ANNOTATION if images else RejectCode.MISSING_FILE
        raise pictures.ExampleError(message, f"{document}/{group.key}", code)
    image = group.parts[images[0]]
    uri = f"{document}/{image.name}"
    with pictures.about(uri):
        values = _values(file, group, unread)
        marked = objects.read_objects(values.get(_OBJECTS, []), names)
        labels = objects.labels_of(values.get("label"), names)
        size = _size(values, file, image) if marked else None
    members = [image, *(group.parts[each] for each in filter(None, [group.mask]))]
    files = [Range(document, each.offset, each.size) for each in members]
    masked = "" if _OBJECTS in values else None
    return Picture(line, uri, None, size, marked, labels, payloads=files, mask=masked)


def _values(file: IO[bytes], group: _Group, unread: set[str]) -> Mapping[str, Any]:
    """Return what the files beside an image say: ``label``, ``objects``, ``width``, ``height``.

    A ``.cls`` has precedence over a ``.json``, and that over a ``.txt``. ``unread`` receives the
    other keys of the JSON; of several labels, none is read.

    Raises: ValueError: a file is no JSON object, or too large.
    """
    found: dict[str, Any] = {}
    if "json" in group.parts:
        try:
            said = json_value(_content(file, group.parts["json"], _MAX_JSON))
        except ValueError as exc:
            raise ValueError(f"{group.key}.json: {exc}") from exc
        if not isinstance(said, dict):
            raise ValueError(f"{group.key}.json: expected an object (got {said!r:.80})")
        found = {key: said[key] for key in (_OBJECTS, *SIZE_ROLES) if said.get(key) is not None}
        others = {key for key in said if said[key] is not None} - {*found, _SOURCE}
        keys = [key for key in others if key.lower() in LABEL_COLUMNS]
        if len(keys) == 1:
            found["label"] = said[keys[0]]
            others -= {*keys}
        unread |= others.difference(_OF_MASKS if group.mask else ())
    for suffix in ("cls", "txt"):
        if suffix in group.parts and (suffix == "cls" or not found):
            text = _content(file, group.parts[suffix], LABEL_LETTERS.most)
            found["label"] = text.decode("utf-8-sig").strip()
    found.setdefault("label", "")
    return found


def _content(file: IO[bytes], member: Member, at_most: int) -> bytes:
    if member.size > at_most:
        raise ValueError(f"{member.name} has {member.size:,} bytes, more than {at_most:,}")
    file.seek(member.offset)
    return file.read(member.size)


def _size(values: Mapping[str, Any], file: IO[bytes], image: Member) -> tuple[int, int]:
    """Return the size of an image as its JSON says it, or from its header. Raises: PayloadError."""
    from recordgen.payloads.opening import file_header

    if size := pictures.size_of(*(values.get(side) for side in SIZE_ROLES)):
        return size
    head = min(image.size, MAX_HEADER)
    header = file_header(_content(file, image._replace(size=head), head))
    return header.width, header.height


def _check_no_caption(where: str, values: Mapping[str, Any], group: _Group) -> None:
    """Check that a text is a label. Raises: SourceError."""
    label = values["label"]
    is_long = isinstance(label, str) and len(label.split()) > _WORDS_OF_A_LABEL
    if is_long and "cls" not in group.parts and _OBJECTS not in values:
        remedy = "write a CSV with a column of captions, and convert it with --schema"
        raise SourceError(f"{where}: {group.key} has a caption ({label!r:.60}); {remedy}")
