"""The same boxes of the same images, as each format of another tool writes them.

Every image has 40 × 20 pixels, and a cat at (4, 5, 8, 10) and a dog that fills it.
"""

import json
from pathlib import Path
from xml.sax.saxutils import escape

from tests.formats import test_label_studio as studio
from tests.formats import test_via as via
from tests.formats.sources import json_lines
from tests.formats.test_coco import box, image
from tests.formats.test_pascal_voc import document as voc
from tests.formats.test_traps import cvat_image, cvat_of, labelme

CLASSES = ("cat", "dog")
#: the corners of each class, in pixels
CORNERS = ((4, 5, 8, 10), (0, 0, 40, 20))
SPLITS = ("train", "valid")

#: left, top, width and height
SIDES = [(left, top, right - left, low - top) for left, top, right, low in CORNERS]


def _coco(folder, names):
    images = [image(at, name) for at, name in enumerate(names)]
    annotations = [
        box(at, n, *SIDES[n], id=2 * at + n, area=1) for at in range(len(names)) for n in (0, 1)
    ]
    categories = [{"id": n, "name": name} for n, name in enumerate(CLASSES)]
    # Keys have any order; most programs begin with the images.
    content = {"annotations": annotations, "categories": categories, "images": images}
    (folder / "_annotations.coco.json").write_text(json.dumps(content))


def _yolo(folder, names):
    config = f"train: train\nval: valid\nnames: [{', '.join(CLASSES)}]\n"
    (folder.parent / "data.yaml").write_text(config)
    lines = [
        f"{n} {(left + right) / 80} {(top + low) / 40} {(right - left) / 40} {(low - top) / 20}\n"
        for n, (left, top, right, low) in enumerate(CORNERS)
    ]
    for name in names:
        (folder / name).with_suffix(".txt").write_text("".join(lines))


def _pascal_voc(folder, names):
    corners = (" ".join(map(str, each)) for each in CORNERS)
    objects = [*zip(CLASSES, corners, strict=True)]
    for at, name in enumerate(map(escape, names)):
        (folder / f"{at}.xml").write_text(voc(name, *objects))


def _hugging_face(folder, names):
    objects = {"bbox": SIDES, "categories": CLASSES}
    records = ({"file_name": name, "objects": objects} for name in names)
    (folder / "metadata.jsonl").write_text(json_lines(*records))


def _cvat(folder, names):
    boxes = [
        f'<box label="{label}" xtl="{x1}" ytl="{y1}" xbr="{x2}" ybr="{y2}"/>'
        for label, (x1, y1, x2, y2) in zip(CLASSES, CORNERS, strict=True)
    ]
    images = (cvat_image(*boxes, name=name) for name in map(escape, names))
    (folder / "annotations.xml").write_text(cvat_of(*images))


def _labelme(folder, names):
    shapes = [
        {"label": label, "shape_type": "rectangle", "points": [corners[:2], corners[2:]]}
        for label, corners in zip(CLASSES, CORNERS, strict=True)
    ]
    for at, name in enumerate(names):
        (folder / f"{at}.json").write_text(labelme(*shapes, imagePath=name))


def _create_ml(folder, names):
    found = [
        {"label": label, "coordinates": {"x": x + w / 2, "y": y + h / 2, "width": w, "height": h}}
        for label, (x, y, w, h) in zip(CLASSES, SIDES, strict=True)
    ]
    content = [{"image": name, "annotations": found} for name in names]
    (folder / "_annotations.createml.json").write_text(json.dumps(content))


def _label_studio(folder, names):
    result = [
        studio.region(labels=[label], x=x / 0.4, y=y / 0.2, width=w / 0.4, height=h / 0.2)
        for label, (x, y, w, h) in zip(CLASSES, SIDES, strict=True)
    ]
    tasks = [studio.task(result, image=f"/data/upload/1/ab12cd34-{name}") for name in names]
    (folder / "project.json").write_text(json.dumps(tasks))


def _open_images(folder, names):
    lines = ["ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax"]
    for name in names:
        for label, (x1, y1, x2, y2) in zip(CLASSES, CORNERS, strict=True):
            corners = f"{x1 / 40},{x2 / 40},{y1 / 20},{y2 / 20}"
            lines.append(f"{Path(name).stem},xclick,/m/{label},1,{corners}")
    (folder / "annotations-bbox.csv").write_text("\n".join(lines))
    descriptions = "".join(f"/m/{label},{label}\n" for label in CLASSES)
    (folder.parent / "class-descriptions-boxable.csv").write_text(descriptions)


def _via(folder, names):
    regions = [
        via.region({"name": "rect", "x": x, "y": y, "width": w, "height": h}, **{"class": label})
        for label, (x, y, w, h) in zip(CLASSES, SIDES, strict=True)
    ]
    images = [via.image(name, *regions) for name in names]
    (folder / "via.json").write_text(via.as_export(images))


def _dota(folder, names):
    lines = [
        f"{left} {top} {right} {top} {right} {low} {left} {low} {label} 0\n"
        for label, (left, top, right, low) in zip(CLASSES, CORNERS, strict=True)
    ]
    (folder / "labelTxt").mkdir()
    for name in names:
        (folder / "labelTxt" / name).with_suffix(".txt").write_text("".join(lines))


#: Each writes the documents of one split beside its images.
WRITERS = {
    "coco": _coco,
    "yolo": _yolo,
    "pascal_voc": _pascal_voc,
    "hugging_face": _hugging_face,
    "cvat": _cvat,
    "labelme": _labelme,
    "create_ml": _create_ml,
    "label_studio": _label_studio,
    "open_images": _open_images,
    "via": _via,
    "dota": _dota,
}


def tfds_features(kind):
    """Return the content of TensorFlow Datasets' features.json for the kinds of features."""
    module = "tensorflow_datasets.core.features"
    if isinstance(kind, dict):
        inner = {key: tfds_features(each) for key, each in kind.items()}
        head = f"{module}.features_dict.FeaturesDict"
        return {"pythonClassName": head, "featuresDict": {"features": inner}}
    if isinstance(kind, list):
        head = f"{module}.sequence_feature.Sequence"
        return {"pythonClassName": head, "sequence": {"feature": tfds_features(kind[0])}}
    return {"pythonClassName": f"{module}.some_feature.{kind}"}


def write(name, root):
    """Write the documents of a format below a folder with images in a folder for each split."""
    for split in SPLITS:
        folder = root / split
        WRITERS[name](folder, sorted(path.name for path in folder.glob("*.jpg")))
