"""Conversions of containers, as tests look at them."""

import json
import shutil

import recordgen
from tests.conftest import encoded, noise
from tests.formats.boxes import boxes_of, examples_of


def image(seed=0):
    return encoded(noise(seed=seed), "JPEG", quality=90)


def converted(folder, *, source=None, **options):
    """Return the dataset, its rejects by uri, and its examples (split and values) by uri."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    options = {"max_reject_fraction": 1, "lint": "-ALL", **options}
    run = recordgen.convert(str(source or folder / "in"), folder / "out", **options)
    path = folder / "out/rejects.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    rejects = [json.loads(line) for line in lines]
    return run.dataset, {item["uri"]: item for item in rejects}, examples_of(folder / "out")


def contents(output):
    """Yield split, image, labels and rounded boxes of each example."""
    found = boxes_of(output)
    for uri, (split, values) in examples_of(output).items():
        label = values.get("image/class/text", [])
        yield split, values["image/key/sha256"], label, found[uri][1]


def converted_each(folder, names):
    """Convert all containers of a folder at once.

    Return the file, the rejects and the uris of examples of each, by their names in order.
    """
    _, _, examples = converted(folder)
    rejects = map(json.loads, (folder / "out/rejects.jsonl").read_text().splitlines())
    found = {path.name: ([], []) for path in (folder / "in").iterdir()}
    for item in rejects:
        said = item["source"] + item["uri"] + item["message"]
        [name] = (name for name in found if name in said)
        found[name][0].append(item)
    for uri in examples:
        found[uri.partition("/")[0]][1].append(uri)
    return {name: (file, *found[file]) for name, file in zip(names, sorted(found), strict=False)}
