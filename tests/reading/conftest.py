from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from recordgen import convert


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """200 one-coloured images in several shards; image n has red n and label n.

    160 in train, 40 in eval; numbers are their labels, so every record can be told from every
    other by what a reader returns.
    """
    folder = tmp_path_factory.mktemp("source")
    rows = []
    for number in range(200):
        side = 4 + number % 5
        pixels = np.zeros((side, 2 * side, 3), np.uint8)
        pixels[..., 0] = number
        Image.fromarray(pixels).save(folder / f"{number}.png")
        rows.append(f"{'VALIDATION' if number % 5 == 0 else 'TRAIN'},{number}.png,{number}\n")
    (folder / "a.csv").write_text("".join(rows))
    return folder


@pytest.fixture(scope="session", params=["none", "gzip"])
def output(request, source, tmp_path_factory):
    """The converted source, plain and compressed."""
    out = str(tmp_path_factory.mktemp("out") / request.param)
    convert(str(source / "a.csv"), out, shard_mb=0.003, compression=request.param)
    return out


@pytest.fixture(scope="session")
def partly_labelled(source, tmp_path_factory):
    """Twelve train records, of which seven have a label; eval has none with one."""
    rows = [f"TRAIN,{n}.png{f',{n}' if n < 7 else ''}\n" for n in range(12)]
    rows += [f"VALIDATION,{n}.png\n" for n in range(20, 24)]
    (source / "partly.csv").write_text("".join(rows))
    out = str(tmp_path_factory.mktemp("out") / "partly")
    convert(str(source / "partly.csv"), out)
    return out
