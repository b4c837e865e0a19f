import os

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="session")
def write_image():
    """Write a small PNG whose pixels depend on a number."""

    def write(path, number, side=8):
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (side, side, 3), np.uint8)
        Image.fromarray(pixels).save(path, "PNG")

    return write


@pytest.fixture(scope="session")
def write_import(write_image):
    """Write an import file and an image for each of its rows: (ml_use, name, label)."""

    def write(path, rows):
        path.parent.mkdir(parents=True, exist_ok=True)
        for number, (_, name, _) in enumerate(rows):
            write_image(path.parent / name, number)
        path.write_text("".join(",".join(row) + "\n" for row in rows))
        return path

    return write


@pytest.fixture(scope="session")
def run_tfx():
    """Run TFX components with the local runner; return the folder's metadata store."""
    from tfx import v1 as tfx

    from pipelines.lineage import Metadata
    from pipelines.pipeline import LOCAL_BEAM_ARGS

    def run(root, *components):
        path = os.path.join(root, "metadata.db")
        os.makedirs(root, exist_ok=True)
        tfx.orchestration.LocalDagRunner().run(
            tfx.dsl.Pipeline(
                pipeline_name="test",
                pipeline_root=os.path.join(root, "artifacts"),
                components=list(components),
                enable_cache=True,
                metadata_connection_config=(
                    tfx.orchestration.metadata.sqlite_metadata_connection_config(path)
                ),
                beam_pipeline_args=list(LOCAL_BEAM_ARGS),
            )
        )
        return Metadata(path)

    return run


@pytest.fixture(scope="session")
def examples_of():
    """Return the Examples artifact of the latest run."""

    def find(metadata):
        outputs = [a for e in metadata.latest_run() for a in metadata.outputs(e)]
        return next(a for a in outputs if a.type == "Examples")

    return find
