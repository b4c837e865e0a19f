"""The names of classes that a README.md of the Hugging Face Hub declares.

    ---
    dataset_info:
      features:
      - name: label
        dtype:
          class_label:
            names:
              '0': cat
              '1': dog
    ---

declares cat and dog for the column label. Rules: "Dataset cards" of Hugging Face's datasets.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from recordgen.formats.listing import Listing

#: The keys of classes beside boxes.
CLASSES = ("categories", "category", "labels", "label")

_README = "README.md"
_HEADER = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t\r]*\n")
_END = re.compile(rb"^---[ \t\r]*$", re.MULTILINE)


def declared_classes(listing: Listing, folder: str) -> Mapping[str, Sequence[str]]:
    """Return the names of classes by column that the README.md of a folder declares."""
    path = posixpath.join(folder, _README)
    if path not in listing:
        return {}
    head = listing.head(path)
    begin = _HEADER.match(head)
    end = _END.search(head, begin.end()) if begin else None
    if begin is None or end is None:
        return {}
    import yaml  # few sources have such a file

    from recordgen.formats.yolo_config import check_yaml

    text = head[begin.end() : end.start()]
    try:
        check_yaml(text)
        found = yaml.load(text, yaml.BaseLoader)  # all values are texts: no is a name
    except (yaml.YAMLError, ValueError):
        return {}
    infos = found.get("dataset_info") if isinstance(found, dict) else None
    classes: dict[str, Sequence[str]] = {}
    for info in infos if isinstance(infos, list) else [infos]:
        features = info.get("features") if isinstance(info, dict) else None
        for feature in features if isinstance(features, list) else ():
            if isinstance(feature, dict) and (names := class_names(feature)):
                classes.setdefault(str(feature.get("name")), names)
    return classes


def class_names(feature: Any) -> Sequence[str]:
    """Return the names of the first class label in a feature, which may be nested.

    The schema of a file has ``{"_type": "ClassLabel", "names": [...]}``, a README.md
    ``{"class_label": {"names": {"0": ...}}}``.
    """
    if isinstance(feature, list):
        if all(isinstance(it, dict) and "name" in it for it in feature):  # of a README.md
            return class_names({it["name"]: it for it in feature})
        return next(filter(None, map(class_names, feature)), ())
    if not isinstance(feature, dict):
        return ()
    label = feature if feature.get("_type") == "ClassLabel" else feature.get("class_label")
    names = label.get("names") if isinstance(label, dict) else None
    if isinstance(names, dict) and set(names) == set(map(str, range(len(names)))):
        names = [names[str(at)] for at in range(len(names))]
    if isinstance(names, list) and names and all(isinstance(it, str) for it in names):
        return tuple(name.strip() for name in names)
    inner = [feature[key] for key in CLASSES if key in feature] if "bbox" in feature else ()
    return next(filter(None, map(class_names, inner or feature.values())), ())
