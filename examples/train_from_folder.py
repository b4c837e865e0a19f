# %% [markdown]
# # Train from a converted folder
#
# `recordgen convert photos/ out` has written the folder; this trains on it:
#
#     python examples/train_from_folder.py [FOLDER]
#
# The cells are jupytext's: `jupytext --to ipynb examples/train_from_folder.py` makes a notebook.

# %%
import sys

import keras

import recordgen

# In a notebook, write your folder here.
source = sys.argv[1] if len(sys.argv) == 2 else "out"
# Digits are small; photos want 160 to 224 pixels.
size, batch_size = (16, 16), 32

# %% [markdown]
# ## Data
# Training data is shuffled anew in each epoch, evaluation data is read in order. Neither is
# changed: for photos, `augment="photo"` adds random crops, mirroring and changes of colour. The
# reading plan can be printed.

# %%
train = recordgen.input_fn(source, split="train", batch_size=batch_size, image_size=size)
evaluation = recordgen.input_fn(source, split="eval", batch_size=batch_size, image_size=size)
print(recordgen.reading.reading_plan(source, batch_size=batch_size, image_size=size))

# %% [markdown]
# ## Model

# %%
layers = [keras.Input((*size, 3))]
for filters in (32, 64):
    layers += [keras.layers.Conv2D(filters, 3, activation="relu"), keras.layers.MaxPooling2D()]
layers += [keras.layers.Flatten(), keras.layers.Dense(len(train.class_names))]
model = keras.Sequential(layers)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])

# %% [markdown]
# ## Fit, evaluate

# %%
model.fit(train, epochs=15, validation_data=evaluation, shuffle=False, verbose=2)
print(f"accuracy {model.evaluate(evaluation, verbose=0)[1]:.4f}")
