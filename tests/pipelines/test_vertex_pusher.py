"""TFX's Pusher for Vertex AI: a model in the Model Registry, behind an endpoint.

The prebuilt container of Vertex AI is TensorFlow Serving, which this suite does not have; a test
looks at the signature that it calls.
"""

from pathlib import Path

import pytest

import recordgen
from pipelines.samples.digits import write_digits
from tests.servers import emulated_gcs
from tests.trainer import train
from tests.vertex_service import serving

ARGUMENTS = {
    "project": "my-project",
    "endpoint_name": "digits",
    "machine_type": "n1-standard-4",
    "min_replica_count": 1,
    "max_replica_count": 3,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of digits."""
    folder = tmp_path_factory.mktemp("digits")
    recordgen.convert(write_digits(str(folder / "data"), 60), str(folder / "dataset"))
    return train(str(folder / "dataset"), folder, image_size=[8, 8], epochs=1, top_k=3)


@pytest.fixture
def service(monkeypatch):
    """Vertex AI and Cloud Storage, emulated."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import aiplatform, storage

    with serving() as vertex, emulated_gcs() as gcs:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs)
        credentials = AnonymousCredentials()
        settings = type(aiplatform.initializer.global_config)()  # of this test alone
        monkeypatch.setattr(aiplatform.initializer, "global_config", settings)
        monkeypatch.setattr(aiplatform, "init", settings.init)
        storage.Client("my-project", credentials).create_bucket("staging")
        aiplatform.init(
            api_endpoint=vertex.url,
            api_transport="rest",
            credentials=credentials,
            staging_bucket="gs://staging",
        )
        # Over REST, Google's client lists no public endpoints: it asks protobuf's messages, instead
        # of its own, whether a private one is configured, and those are always true.
        monkeypatch.setattr(aiplatform.Endpoint, "list", lambda **_: endpoints_of(vertex))
        yield vertex


def endpoints_of(service):
    """Return the endpoints that were created."""
    from google.cloud import aiplatform

    made = [each for each in service.requests if each["path"].endswith("/endpoints")]
    return [aiplatform.Endpoint("1") for _ in made]


def pushed(model, folder, image):
    """Return the artifact of a push by the executor of TFX's extension."""
    from tfx.dsl.components.base.base_executor import BaseExecutor
    from tfx.extensions.google_cloud_ai_platform import constants
    from tfx.extensions.google_cloud_ai_platform.pusher import component, executor
    from tfx.types import channel_utils, standard_artifacts

    trained, result = standard_artifacts.Model(), standard_artifacts.PushedModel()
    trained.uri, result.uri = str(folder / "trained"), str(folder / "pushed")
    (folder / "trained").mkdir()
    (folder / "trained/Format-Serving").symlink_to(model)  # the path in TFX's Trainer
    pusher = component.Pusher(
        model=channel_utils.as_channel([trained]),
        custom_config={
            constants.ENABLE_VERTEX_KEY: True,
            constants.VERTEX_REGION_KEY: "us-central1",
            constants.VERTEX_CONTAINER_IMAGE_URI_KEY: image,
            constants.SERVING_ARGS_KEY: ARGUMENTS,
        },
    )
    executor.Executor(BaseExecutor.Context(tmp_dir=str(folder))).Do(
        {"model": [trained]}, {"pushed_model": [result]}, pusher.exec_properties
    )
    return result


def test_the_pusher_registers_the_model_and_deploys_it(model, service, tmp_path):
    from google.cloud import aiplatform, storage

    uri = aiplatform.helpers.get_prebuilt_prediction_container_uri
    image = uri("tensorflow", "2.15", region="us-central1")
    result = pushed(model, tmp_path, image)
    assert result.get_int_custom_property("pushed") == 1
    sent = {each["path"].rpartition("/")[2]: each["body"] for each in service.requests}
    assert sent["endpoints"]["displayName"] == "digits"
    registered = sent["models:upload"]["model"]
    assert registered["containerSpec"]["imageUri"] == image
    deployed = sent["1:deployModel"]
    resources = deployed["deployedModel"]["dedicatedResources"]
    assert resources["machineSpec"]["machineType"] == "n1-standard-4"
    assert (resources["minReplicaCount"], resources["maxReplicaCount"]) == (1, 3)
    assert deployed["trafficSplit"] == {"0": 100}
    # Google's client has accepted the layout for a prebuilt container, and has copied all files.
    bucket, _, folder = registered["artifactUri"].removeprefix("gs://").partition("/")
    client = storage.Client("my-project", aiplatform.initializer.global_config.credentials)
    copied = {blob.name.removeprefix(f"{folder}/") for blob in client.list_blobs(bucket)}
    assert copied == {
        path.relative_to(model).as_posix() for path in Path(model).rglob("*") if path.is_file()
    }
    assert {"saved_model.pb", "variables/variables.index"} <= copied


def test_the_signature_is_one_that_servers_take(model):
    from tensorflow.python.saved_model import signature_constants

    from tests.cpp_loader import CppModel

    found = CppModel(model).signatures["serving_default"]
    assert found.method_name == signature_constants.PREDICT_METHOD_NAME
    # The only input needs no name in a request, and an output called …_bytes would be base64.
    outputs = {"labels", "scores", "error"}
    assert (set(found.inputs), set(found.outputs)) == ({"image_bytes"}, outputs)
    for tensor in (*found.inputs.values(), *found.outputs.values()):
        assert tensor.tensor_shape.dim[0].size == -1  # a batch of any size
