"""A conversion in parts, for the scheduler of a cluster: plan once, work on each part, commit.

    from recordgen import parts

    parts.plan("gs://B/labels.csv", "gs://B/out", 100)
    …  # on any machine: parts.work("gs://B/out", part) for each part from 0 to 99
    parts.commit("gs://B/out")

The dataset has the bytes of :func:`recordgen.convert`. As a command: ``recordgen parts``.
"""

from __future__ import annotations

from recordgen.conversion import parts as _parts
from recordgen.conversion.doors import in_python

plan = in_python(_parts.plan)
work = in_python(_parts.work)
commit = in_python(_parts.commit)

for _door in (plan, work, commit):
    _door.__module__ = __name__  # where pickle finds it, for the processes of a pool

__all__ = ["commit", "plan", "work"]
