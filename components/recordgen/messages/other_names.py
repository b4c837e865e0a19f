"""The names that other tools give to options, answered with ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

# Other tools' names of options, and what to write for them: an option, or else the last text.
_OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "buffer_size": ("tuning=recordgen.Tuning(shuffle_buffer=…)",),
    "class_mode": ("label_mode",),
    "class_names": ("vocabulary",),
    "data_format": ("layout",),
    "dtype": ("scale",),
    "input_schema": ("schema",),
    "num_shards": ("shards", "shard_mb", "shard"),
    "num_workers": ("threads", "tuning=recordgen.Tuning(threads=…)"),
    "output_dir": ("the folder as the second argument",),
    "scale": ("dtype",),
    "shuffle": ("seed",),
    "shuffle_buffer_size": ("tuning=recordgen.Tuning(shuffle_buffer=…)",),
    "size": ("image_size",),
    "target_size": ("image_size",),
    "validation_split": ("split='80,20,0' in recordgen.convert",),
}


def our_name(name: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown option that another tool has; else "".

    ``"size"``, ``["image_size"]`` → ``"; write image_size=…"``
    """
    words = _OTHER_NAMES.get(name, ())
    ours = [f"{word}=…" for word in words if word in known]
    return f"; write {(ours or words[-1:])[0]}" if words else ""
