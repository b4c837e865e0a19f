"""Near-duplicates: images that look nearly the same share a split.

    pictures ─FactsBuilder─▶ columns of the rows ─shared_hashes─▶ one split hash for each group

Images are nearly the same by the rule of the checks NEAR_LEAK and NEAR_DUPLICATE, or if their files
have the same bytes. If a is like b, and b is like c, all three are one group. The group gets the
split of its member with the smallest sha256, so that neither the order of rows nor the runner
matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from recordgen.core.rows.columns import Columns

#: Columns that are needed to compare an image with others.
LOOKS = ("perceptual_hash", "signature", "contrast")

#: Columns of pictures → for each one the number of the first that it is like, int [n].
Alike: TypeAlias = "Callable[[Columns], npt.NDArray[np.signedinteger[Any]]]"


def by_content(
    facts: Columns, *order: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return the rows with known content, sorted by it, and which are the first of equal ones.

    Keys in ``order`` order rows of equal content; the last matters most.
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


def shared_hashes(facts: Columns, alike: Alike) -> npt.NDArray[np.uint64]:
    """Return the split hash of each row, equal within a group: uint64 [n].

    Rows without ``content`` keep their own.
    """
    hashes: npt.NDArray[np.uint64] = facts["split_hash"].to_numpy().copy()
    rows, is_first = by_content(facts)
    # One row per content, sorted by digest, so that the first of a group has the smallest digest.
    firsts = rows[is_first]
    leaders = np.arange(len(firsts))
    seen = np.flatnonzero(np.asarray(facts["perceptual_hash"].is_valid())[firsts])
    leaders[seen] = seen[alike(facts.select(LOOKS).take(firsts[seen]))]
    hashes[rows] = hashes[firsts[leaders[np.cumsum(is_first) - 1]]]
    return hashes
