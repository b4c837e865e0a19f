"""The names that other tools give to options and functions, answered with ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

_MAP = "data.map(function)"

# Other tools' names of options, and what to write for them: the first of our options that the
# function has, or the first text that is no name of an option.
_OPTIONS: Mapping[str, Sequence[str]] = {
    # TFRecorder
    "header": ("columns", "nothing: a header is detected"),
    "input_schema": ("schema",),
    "job_label": ("dataflow_options={'job_name': …}",),
    "names": ("columns",),
    "num_shards": ("shards", "shard_mb", "shard"),
    "output_dir": ("the folder as the second argument",),
    "tfrecorder_wheel": ("dataflow_options={'setup_file': …}",),
    # Keras
    "bounding_box_format": ("boxes",),
    "class_mode": ("label_mode",),
    "class_names": ("vocabulary",),
    "color_mode": ("transform", _MAP),
    "crop_to_aspect_ratio": ("resize='center_crop'",),
    "data_format": ("layout", _MAP),
    "interpolation": ("method", "tuning=recordgen.Tuning(decoder=…)"),
    "pad_to_aspect_ratio": ("resize='fit'",),
    "subset": ("split", "data['train'] or data['validation'] behind load(…)"),
    "target_size": ("image_size",),
    "validation_split": ("split='80,20,0' in recordgen.convert",),
    # tf.data and TensorFlow Datasets
    "as_supervised": ("nothing: there are always labels",),
    "buffer_size": ("tuning=recordgen.Tuning(shuffle_buffer=…)",),
    "compression_type": ("nothing: compressed files are detected",),
    "drop_remainder": ("tuning=recordgen.Tuning(drop_remainder=True)",),
    "features": ("feature_spec=…",),
    "map_fn": ("transform", _MAP),
    "num_epochs": ("epochs",),
    "num_parallel_calls": ("tuning=recordgen.Tuning(num_parallel_calls=…)",),
    "prefetch": ("tuning=recordgen.Tuning(prefetch=…)",),
    "repeat": ("epochs", "another seed for each pass"),
    "shuffle_buffer_size": ("tuning=recordgen.Tuning(shuffle_buffer=…)",),
    # PyTorch
    "channels_first": ("layout='CHW'",),
    "collate_fn": ("torch.utils.data.DataLoader(…, collate_fn=…)",),
    "drop_last": ("drop_remainder", "tuning=recordgen.Tuning(drop_remainder=True)"),
    "num_workers": ("threads", "tuning=recordgen.Tuning(threads=…)"),
    "shuffle": ("seed",),
    "target_transform": ("images(…).map(function)",),
    # one of our functions, in another one
    "augment": ("transform",),
    "batch_size": ("it in images(…).batches(…) or a DataLoader",),
    "dtype": ("scale",),
    "epochs": ("another seed for each pass",),
    "fields": ("boxes={'fields': …}",),
    "image_size": ("it in images(…)",),
    "label_mode": ("images(…).map(function)",),
    "layout": (_MAP,),
    "method": ("tuning=recordgen.Tuning(decoder=…)",),
    "only": ("torch.utils.data.Subset(images, numpy.flatnonzero(images.labels == …))",),
    "size": ("image_size",),
    "transform": ("it in images(…)", _MAP),
}

# Other tools' functions.
_FUNCTIONS: Mapping[str, str] = {
    "DataLoader": "torch.utils.data.DataLoader(recordgen.source(…).images(…))",
    "convert_and_load": "recordgen.convert(source, output), then recordgen.load(output)",
    "create_tfrecords": "recordgen.convert(source, output)",
    "image_dataset_from_directory": "recordgen.convert(folder, out), then recordgen.load(out)",
    "inspect": "recordgen.source(output)[0], or the command recordgen inspect OUTPUT",
    "load_dataset": "recordgen.load(output)",
}


def our_name(name: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown option that another tool has; else "".

    ``"size"``, ``["image_size"]`` → ``"; write image_size=…"``
    """
    for word in _OPTIONS.get(name, ()):
        if word in known:
            return f"; write {word}=…"
        if not word.isidentifier():
            return f"; write {word}"
    return ""


def our_function(name: str) -> str:
    """Return the end of a message about an unknown function that another tool has; else ""."""
    return f"; write {_FUNCTIONS[name]}" if name in _FUNCTIONS else ""
