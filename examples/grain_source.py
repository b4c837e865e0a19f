"""Trains a JAX model on a converted folder through Grain, without TensorFlow.

python examples/grain_source.py [FOLDER]
"""

import sys

import grain
import jax
import jax.numpy as jnp

import recordgen

IMAGE_SIZE, BATCH_SIZE, EPOCHS, HIDDEN = 16, 32, 10, 64


def scores(weights, pixels):
    """Return the score of each class for uint8 [batch, height, width, 3]."""
    inputs = pixels.reshape(len(pixels), -1) / 255
    hidden = jax.nn.relu(inputs @ weights["in"] + weights["in_bias"])
    return hidden @ weights["out"] + weights["out_bias"]


def loss(weights, pixels, labels):
    chosen = jax.nn.log_softmax(scores(weights, pixels))[jnp.arange(len(labels)), labels]
    return -chosen.mean()


@jax.jit
def step(weights, momentum, pixels, labels):
    value, gradient = jax.value_and_grad(loss)(weights, pixels, labels)
    momentum = jax.tree.map(lambda old, new: 0.9 * old + new, momentum, gradient)
    return jax.tree.map(lambda old, by: old - 0.05 * by, weights, momentum), momentum, value


def initial(classes):
    first, second = jax.random.split(jax.random.key(0))
    size = IMAGE_SIZE * IMAGE_SIZE * 3
    return {
        "in": jax.random.normal(first, (size, HIDDEN)) * (2 / size) ** 0.5,
        "in_bias": jnp.zeros(HIDDEN),
        "out": jax.random.normal(second, (HIDDEN, classes)) * (2 / HIDDEN) ** 0.5,
        "out_bias": jnp.zeros(classes),
    }


def main(folder):
    images = recordgen.source(folder, "train").images(IMAGE_SIZE)
    data = grain.MapDataset.source(images).seed(0).shuffle()
    data = data.repeat(EPOCHS).batch(BATCH_SIZE, drop_remainder=True)
    weights = initial(len(images.class_names))
    momentum = jax.tree.map(jnp.zeros_like, weights)
    for pixels, labels in data.to_iter_dataset(grain.ReadOptions(num_threads=2)):
        weights, momentum, value = step(weights, momentum, pixels, labels)
    print(f"loss {value:.4f}")
    right = seen = 0
    for pixels, labels in recordgen.source(folder, "eval").images(IMAGE_SIZE).batches(BATCH_SIZE):
        right += int((scores(weights, pixels).argmax(1) == labels).sum())
        seen += len(labels)
    print(f"accuracy {right / seen:.4f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out")
