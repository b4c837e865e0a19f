"""Near-duplicates: images that look nearly the same share a split.

    pictures ─SeenImages─▶ columns beside the rows ─shared_hashes─▶ one split hash for each group

What is nearly the same is what the checks NEAR_LEAK and NEAR_DUPLICATE take for it; files with the
same bytes are, too. If a is like b, and b like c, the three are one group. Its split is that of its
member with the smallest sha256: neither the order of rows nor a runner decides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from recordgen.lint.facts import Notes, picture_facts
from recordgen.lint.looks import SmallPicture
from recordgen.lint.pictures import find_alike
from recordgen.rows.columns import Columns

#: What must be known of an image to compare it with others, as columns.
LOOKS = ("perceptual_hash", "signature", "contrast")


class SeenImages:
    """What images of rows look like, in the order of the rows; 76 bytes of each are kept."""

    def __init__(self) -> None:
        self._notes = Notes()

    def add(self, picture: SmallPicture | None) -> None:
        """Look at the image of the next row; None: it has none."""
        one = Notes()
        one.add(0, b"", None, picture)
        self._notes.extend(one)

    def columns(self) -> Mapping[str, Any]:
        """Return the columns of :data:`LOOKS`; of rows without an image, nulls."""
        found = self._notes.columns()
        return {name: found[name] for name in LOOKS}


def by_content(
    facts: Columns, *order: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return the rows whose content is known, by content, and which are the first of theirs.

    Args:
        facts: n rows with the first 16 bytes of a sha256 as ``content``, null where it is unknown.
        order: what orders rows of one content, [n] each, the last of them before the others.
    """
    content = facts["content"].combine_chunks()
    known = np.flatnonzero(np.asarray(pc.is_valid(content)))
    digests = np.frombuffer(b"".join(content.drop_null().to_pylist()), ">u8").reshape(-1, 2)
    keys = (*(key[known] for key in order), digests[:, 1], digests[:, 0])
    ordered = np.lexsort(keys)
    digests = digests[ordered]
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = (digests[1:] != digests[:-1]).any(axis=1)
    return known[ordered], is_first


def shared_hashes(facts: Columns) -> npt.NDArray[np.uint64]:
    """Return the split hash of each row, the same one for a group: uint64 [n].

    Args:
        facts: ``split_hash``, the first 16 bytes of the sha256 as ``content`` (null: the row's own
            hash stays), and the columns of :data:`LOOKS`.
    """
    hashes: npt.NDArray[np.uint64] = facts["split_hash"].to_numpy().copy()
    rows, is_first = by_content(facts)
    # A row for each different content, by its digest: so the first of a group has the smallest one.
    firsts = rows[is_first]
    leaders = np.arange(len(firsts))
    seen = np.flatnonzero(np.asarray(facts["perceptual_hash"].is_valid())[firsts])
    leaders[seen] = seen[find_alike(picture_facts(facts.select(LOOKS).take(firsts[seen])))]
    hashes[rows] = hashes[firsts[leaders[np.cumsum(is_first) - 1]]]
    return hashes
