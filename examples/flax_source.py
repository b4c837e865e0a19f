"""Trains a Flax model on a converted folder through Grain, without TensorFlow.

    python examples/flax_source.py [FOLDER]

Halfway, it stops in the middle of an epoch, and continues from a checkpoint: the state of the model
and of the iterator.
"""

import sys

import grain
import jax.numpy as jnp
import optax
from flax import nnx

import recordgen

IMAGE_SIZE, BATCH_SIZE, EPOCHS = 16, 32, 8


class Model(nnx.Module):
    """Two convolutions and a dense layer."""

    def __init__(self, classes, rngs):
        self.first = nnx.Conv(3, 16, kernel_size=(3, 3), rngs=rngs)
        self.second = nnx.Conv(16, 32, kernel_size=(3, 3), rngs=rngs)
        self.dense = nnx.Linear(32 * (IMAGE_SIZE // 4) ** 2, classes, rngs=rngs)

    def __call__(self, pixels):
        """Return the score of each class for uint8 [batch, height, width, 3]."""
        features = pixels / 255
        for layer in (self.first, self.second):
            features = nnx.max_pool(nnx.relu(layer(features)), (2, 2), strides=(2, 2))
        return self.dense(features.reshape(len(features), -1))


@nnx.jit
def step(model, optimizer, pixels, labels):
    """Train on a batch, and return its loss."""

    def loss(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(pixels), labels).mean()

    value, gradient = nnx.value_and_grad(loss)(model)
    optimizer.update(model, gradient)
    return value


def batches(folder):
    """Return the iterator over the batches of all epochs."""
    images = recordgen.source(folder, "train").images(IMAGE_SIZE)
    data = grain.MapDataset.source(images).seed(0).shuffle().repeat(EPOCHS)
    data = data.batch(BATCH_SIZE, drop_remainder=True)
    return len(data), iter(data.to_iter_dataset(grain.ReadOptions(num_threads=2)))


def new_model(classes):
    """Return a model and its optimizer."""
    model = Model(classes, nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)


def main(folder):
    classes = len(recordgen.source(folder, "train").class_names)
    model, optimizer = new_model(classes)
    steps, iterator = batches(folder)
    for number, (pixels, labels) in enumerate(iterator, start=1):
        value = step(model, optimizer, pixels, labels)
        if number == steps // 2:
            break
    checkpoint = nnx.state((model, optimizer)), iterator.get_state()

    model, optimizer = new_model(classes)  # as in another process
    nnx.update((model, optimizer), checkpoint[0])
    _, iterator = batches(folder)
    iterator.set_state(checkpoint[1])
    for pixels, labels in iterator:
        value = step(model, optimizer, pixels, labels)
    print(f"loss {value:.4f}")

    right = seen = 0
    for pixels, labels in recordgen.source(folder, "eval").images(IMAGE_SIZE).batches(BATCH_SIZE):
        right += int((model(jnp.asarray(pixels)).argmax(1) == labels).sum())
        seen += len(labels)
    print(f"accuracy {right / seen:.4f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out")
