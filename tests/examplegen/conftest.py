import os

import pytest


@pytest.fixture(scope="session")
def run_tfx():
    """Run TFX components with the local runner; return the folder's metadata store."""
    from tfx import v1 as tfx

    from pipelines.metadata import Metadata
    from pipelines.pipeline import LOCAL_BEAM_ARGS

    def run(root, *components, beam_args=()):
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
                beam_pipeline_args=[*LOCAL_BEAM_ARGS, *beam_args],
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
