"""The names that other tools give to options and functions, answered with ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping

# What to write for other tools' names of options. Our options count for the functions that have
# them; the first answer that a name has is given.
_OPTIONS: Mapping[str, str] = {
    "boxes": "bounding_box_format",
    "columns": "names",
    "drop_remainder": "drop_last",
    "epochs": "num_epochs repeat",
    "image_size": "size target_size",
    "label_mode": "class_mode",
    "layout": "channels_first data_format",
    "method": "interpolation",
    "scale": "dtype",
    "schema": "input_schema",
    "seed": "shuffle",
    "shards": "num_shards",
    "shard_mb": "num_shards",
    "shard": "num_shards",
    "split": "subset",
    "threads": "num_workers",
    "transform": "augment color_mode map_fn",
    "vocabulary": "class_names",
    # no names of options
    "another seed for each pass": "epochs num_epochs repeat",
    "boxes={'fields': …}": "fields",
    "data.map(function)": "color_mode data_format layout map_fn",
    "data['train'] or data['validation']": "subset",
    "dataflow_options={'setup_file': …}": "tfrecorder_wheel",
    "images(…).map(function)": "label_mode target_transform",
    "it in images(…)": "image_size transform",
    "it in images(…).batches(…) or in a DataLoader": "batch_size",
    "nothing: it is detected": "as_supervised compression_type header",
    "resize='center_crop'": "crop_to_aspect_ratio",
    "resize='fit'": "pad_to_aspect_ratio",
    "split='80,20,0' in recordgen.convert": "validation_split",
    "the folder as the second argument": "output_dir output_path tfrecord_dir",
    "the source as the first argument": "input_data input_path src",
    "train_dataset(…) or eval_dataset(…)": "is_training training",
    "torch.utils.data.DataLoader(…, collate_fn=…)": "collate_fn",
    "tuning=recordgen.reading.Tuning(decoder=…)": "interpolation method",
    "tuning=recordgen.reading.Tuning(drop_remainder=True)": "drop_last drop_remainder",
    "tuning=recordgen.reading.Tuning(num_parallel_calls=…)": "num_parallel_calls",
    "tuning=recordgen.reading.Tuning(prefetch=…)": "prefetch",
    "tuning=recordgen.reading.Tuning(shuffle_buffer=…)": "buffer_size shuffle_buffer_size",
    "tuning=recordgen.reading.Tuning(threads=…)": "num_workers",
}

# Other tools' functions.
_FUNCTIONS: Mapping[str, str] = {
    "DataLoader": "torch.utils.data.DataLoader(recordgen.source(…).images(…))",
    "convert_and_load": "recordgen.convert(source, output), then recordgen.load(output)",
    "create_tfrecords": "recordgen.convert(source, output)",
    "image_dataset_from_directory": "recordgen.convert(folder, out), then recordgen.load(out)",
    "inspect": "recordgen.source(output)[0], or the command recordgen inspect OUTPUT",
}


def our_name(name: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown option that another tool has; else "".

    ``"size"``, ``["image_size"]`` → ``"; write image_size=…"``
    """
    for answer, names in _OPTIONS.items():
        if name in names.split() and (answer in known or not answer.isidentifier()):
            return f"; write {answer}=…" if answer in known else f"; write {answer}"
    return ""


def our_function(name: str) -> str:
    """Return the end of a message about an unknown function that another tool has; else ""."""
    return f"; write {_FUNCTIONS[name]}" if name in _FUNCTIONS else ""
