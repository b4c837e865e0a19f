"""VGG Image Annotator: projects, exports of two versions, CSV, shapes, and attributes."""

import json
import math

import pytest

BOX = [0.1, 0.25, 0.2, 0.5]
RECT = {"name": "rect", "x": 4, "y": 5, "width": 4, "height": 5}
HUGE = 10**400


def region(shape=RECT, **attributes):
    """Return a region; it is a cat unless attributes are given."""
    return {"shape_attributes": shape, "region_attributes": attributes or {"class": "cat"}}


def image(name, *regions):
    """Return an item of an export."""
    return {"filename": name, "size": 9, "regions": list(regions), "file_attributes": {}}


def as_export(images):
    return json.dumps({f"{item['filename']}{item['size']}": item for item in images})


def as_project(images):
    settings = {"ui": {}, "project": {"name": "x"}}
    return json.dumps(
        {"_via_settings": settings, "_via_img_metadata": json.loads(as_export(images))}
    )


def as_version_1(images):
    numbered = [
        {**item, "regions": {str(at): each for at, each in enumerate(item["regions"])}}
        for item in images
    ]
    return as_export(numbered)


def as_csv(images, begin="#"):
    """Return the CSV of an export, which has a line for each region, and one for no region."""
    header = f"{begin}filename,file_size,file_attributes,region_count,region_id"
    lines = [f"{header},region_shape_attributes,region_attributes"]
    for item in images:
        regions = item["regions"]
        for at, each in enumerate(regions or [{"shape_attributes": {}, "region_attributes": {}}]):
            texts = [json.dumps(each[key]) for key in ("shape_attributes", "region_attributes")]
            quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
            lines.append(f'{item["filename"]},9,"{{}}",{len(regions)},{at},{",".join(quoted)}')
    return "\n".join(lines) + "\n"


FORMS = [
    (as_export, "via.json"),
    (as_project, "project.json"),
    (as_version_1, "via.json"),
    (as_csv, "via.csv"),
    (lambda images: as_csv(images, ""), "via.csv"),
]


@pytest.mark.parametrize(("form", "name"), FORMS)
def test_all_forms_have_the_same_boxes(form, name, outcome):
    """An image without regions has no objects; one that is not listed is not used."""
    images = [
        image("a.png", region(), region({**RECT, "x": 0}, **{"class": "dog"})),
        image("b.png"),
    ]
    found = outcome({f"valid/{name}": form(images)}, *(f"valid/{name}.png" for name in "abc"))
    assert found.images == {
        "valid/a.png": [("cat", BOX), ("dog", [0, 0.25, 0.1, 0.5])],
        "valid/b.png": [],
    }
    assert set(found.splits.values()) == {"eval"}


def document(*regions):
    """Return a.png with regions beside b.png."""
    return {"via.json": as_export([image("a.png", *regions), image("b.png", region())])}


POLYGON = {"name": "polygon", "all_points_x": [4, 8, 6], "all_points_y": [5, 5, 10]}
CIRCLE = {"name": "circle", "cx": 6, "cy": 7, "r": 2}
ELLIPSE = {"name": "ellipse", "cx": 6, "cy": 7.5, "rx": 2.5, "ry": 2}
POINT, LINE = {"name": "point", "cx": 1, "cy": 2}, {"name": "polyline", "all_points_x": [1]}

# regions, boxes, the changes that are counted
READ = [
    ([region(POLYGON)], [("cat", BOX)], {}),
    ([region(CIRCLE)], [("cat", [0.1, 0.25, 0.2, 0.45])], {}),
    ([region({**ELLIPSE, "theta": 0})], [("cat", [0.0875, 0.275, 0.2125, 0.475])], {}),
    ([region({**ELLIPSE, "theta": math.pi / 2})], [("cat", BOX)], {"boxes_rotated": 1}),
    ([region(), region(POINT), region(LINE)], [("cat", BOX)], {"shapes_dropped": 1}),
    ([region(**{"class": {"cat": True, "dog": False}})], [("cat", BOX)], {}),
    ([region(**{"class": " cat ", "colour": "red"})], [("cat", BOX)], {}),
    ([region(**{"class": 7})], [("7", BOX)], {}),
]


@pytest.mark.parametrize(("regions", "boxes", "adjusted"), READ)
def test_shapes_and_attributes(regions, boxes, adjusted, outcome):
    """Regions of each shape become boxes with their attribute as class."""
    found = outcome(document(*regions), "a.png", "b.png")
    assert found.images == {"a.png": boxes, "b.png": [("cat", BOX)]}
    assert (found.adjusted, found.rejects) == (adjusted, [])


@pytest.mark.parametrize(("attributes", "label"), [({}, "object"), ({"": "dog"}, "dog")])
def test_regions_without_attributes_have_one_class(attributes, label, outcome):
    """The class is ``object``, and a note says so; an attribute may have no name."""
    bare = [{**region(shape), "region_attributes": attributes} for shape in (CIRCLE, RECT)]
    images = [image("a.png", *bare), image("b.png")]
    found = outcome({"via.json": as_export(images)}, "a.png", "b.png")
    assert found.images == {
        "a.png": [(label, [0.1, 0.25, 0.2, 0.45]), (label, BOX)],
        "b.png": [],
    }
    assert len(found.skipped) == (label == "object")


# a region that rejects its image
REGIONS = [
    region(**{"class": ""}),
    region(**{"class": {"cat": True, "dog": True}}),
    region(**{"colour": "red"}),
    region({**RECT, "width": None}),
    region({**RECT, "width": HUGE}),
    region({**POLYGON, "all_points_x": [1]}),
    region({"name": "cuboid"}),
    region(None),
    region(**{"class": ["cat"]}),
    5,
]
GOOD = image("b.png", region())
DEEP = "[" * 20_000 + "]" * 20_000
# a line that rejects its image, which would have a region less
LINES = ["a.png,9,{}", f"a.png,9,{{}},1,1,{DEEP},{{}}", "a.png,\0", 'a.png,"']

# exports in which a.png cannot be used
REJECTED = [
    *(document(region(), bad) for bad in REGIONS),
    *(
        {"via.json": form([{**image("a.png"), "regions": regions}, GOOD])}
        for form in (as_export, as_project)
        for regions in (5, "cat", True)
    ),
    *({"via.csv": as_csv([image("a.png", region()), GOOD]) + line + "\n"} for line in LINES),
]


@pytest.mark.parametrize("files", REJECTED)
def test_a_region_that_cannot_be_used_rejects_its_image(files, outcome):
    """The image would teach a false background; others are read."""
    found = outcome(files, "a.png", "b.png")
    assert [item.uri for item in found.rejects] == ["a.png"]
    assert [*found.images] == ["b.png"]
