"""Columns of boxes, masks and points are read, or refused by name: never ignored."""

import pytest

from recordgen.errors import UsageError
from recordgen.formats.detect import detect
from recordgen.formats.geometry import is_list_of_numbers
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions
from recordgen.tasks.object_detection.annotation import Boxes
from tests.rows import read_rows

# header, line, names in the message
REFUSED = [
    ("filename,class,xmin,ymin,width,height", "{i}.jpg,cat,1,2,3,4", "xmin, ymin, width, height"),
    ("image,label,left,top,width,height", "{i}.jpg,cat,1,2,3,4", "left, top, width, height"),
    ("image,label,x_center,y_center,w,h", "{i}.jpg,cat,.1,.2,.3,.4", "x_center, y_center, w, h"),
    ("image,label,bbox_x,bbox_y", "{i}.jpg,cat,1,2", "bbox_x, bbox_y"),
    ("image,label,cx,cy,r", "{i}.jpg,cat,1,2,3", "cx, cy"),
    ("image,label,TopLeftX,TopLeftY", "{i}.jpg,cat,1,2", "TopLeftX, TopLeftY"),
    ("image,label,bbox", '{i}.jpg,cat,"[1, 2, 3, 4]"', "bbox"),
    ("image,label,mask", "{i}.jpg,cat,masks/{i}.png", "mask"),
    ("image,tumor_mask", "{i}.jpg,masks/{i}.png", "tumor_mask"),
    ("image,label,target", "{i}.jpg,cat,masks/{i}.png", "target"),
    ("image,label,polygon", '{i}.jpg,cat,"1,2,3,4,5,6"', "polygon"),
    ("image,label,points", "{i}.jpg,cat,1 2 3 4", "points"),
    ("image,label,EncodedPixels", "{i}.jpg,cat,264 17 265 33", "EncodedPixels"),
    ("image,label,shape", '{i}.jpg,cat,"[[3, 4], [10, 4]]"', "shape"),
    ("image,label,what", '{i}.jpg,cat,"POLYGON ((3 4, 10 4))"', "what"),
    ("image,label,what", '{i}.jpg,cat,"{{""x"": 3, ""y"": 4}}"', "what"),
    ("image,label,a,b,c,d", "{i}.jpg,cat,10,20,30,40", "a, b, c, d"),
]


def options_of(folder, header, line, **options):
    lines = [header, *(line.format(i=number) for number in range(5))]
    (folder / "a.csv").write_text("\n".join(lines) + "\n")
    return detect([ImportFile(str(folder / "a.csv"))], ConvertOptions(**options)).options


@pytest.mark.parametrize(("header", "line", "names"), REFUSED)
def test_geometry_is_refused_by_name(header, line, names, tmp_path):
    """The message names exactly the columns that would be lost, and its remedy works."""
    with pytest.raises(UsageError) as caught:
        options_of(tmp_path, header, line)
    assert f": {names};" in str(caught.value)
    if "label" in header:
        remedy = str(caught.value).split("--columns ")[1].split("\n")[0]
        found = options_of(tmp_path, header, line, columns=remedy)
        assert found.task == "image_classification"


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("image,label,width,height", "{i}.jpg,cat,640,480"),  # the size of the image
        ("image,label,age,id", "{i}.jpg,cat,31,{i}"),
        ("image,label,year,month,day,hour", "{i}.jpg,cat,2020,5,{i}2,3"),
        ("image,label,mask", "{i}.jpg,cat,yes"),
        ("image,label,points", "{i}.jpg,cat,7"),
        ("filename,filepath,label", "{i}.jpg,images/{i}.jpg,cat"),  # one image, two names
        ("filename,url,label", "{i}.jpg,https://a.example/{i}9.jpg,cat"),
        ("image,label,x_ray_id", "{i}.jpg,cat,{i}"),
        ("image,label,note", '{i}.jpg,cat,"1 of 2, seen"'),
    ],
)
def test_other_columns_are_ignored(header, line, tmp_path):
    assert options_of(tmp_path, header, line).task == "image_classification"


@pytest.mark.parametrize(
    ("more", "value", "names"),
    [
        ("x3,y3,x4,y4", ".5,.6,.1,.6", "x3, y3, x4, y4"),
        ("segmentation", '"[[1, 2, 3, 4]]"', "segmentation"),
        ("mask", "masks/{i}.png", "mask"),
    ],
)
def test_geometry_beside_boxes_is_refused(more, value, names, tmp_path):
    """Object detection reads two corners and nothing else."""
    header, line = f"image,label,x1,y1,x2,y2,{more}", "{i}.jpg,cat,.1,.2,.5,.6," + value
    with pytest.raises(UsageError, match=f": {names};") as caught:
        options_of(tmp_path, header, line)
    remedy = str(caught.value).split("--columns ")[1].split("\n")[0]
    assert options_of(tmp_path, header, line, columns=remedy).task == "object_detection"


@pytest.mark.parametrize(
    "header", ["image,label,xtl,ytl,xbr,ybr", "image,label,topX,topY,bottomX,bottomY"]
)
def test_corners_of_other_tools_are_read(header, tmp_path):
    """CVAT's and Azure's names of corners are boxes."""
    options = options_of(tmp_path, header, "{i}.jpg,cat,.1,.2,.5,.6")
    assert options.task == "object_detection"
    row = read_rows(options, ImportFile(str(tmp_path / "a.csv")))[0]
    assert [tuple(box) for box in Boxes.from_json(row.annotation).boxes] == [
        ("cat", 0.1, 0.2, 0.5, 0.6)
    ]


@pytest.mark.parametrize(
    ("text", "is_list"),
    [
        ("[1, 2]", True),
        ("1 2 3", True),
        ("(1.5;2)", True),
        ("-1e3,2,.5", True),
        ("1,234", False),
        ("2020-01-01 10:00", False),
        ("[cat, dog]", False),
        ("", False),
        ("1" * 100_000 + "x", False),
    ],
)
def test_lists_of_numbers(text, is_list):
    """Numbers in brackets, or three without, are a list."""
    assert is_list_of_numbers(text) is is_list
