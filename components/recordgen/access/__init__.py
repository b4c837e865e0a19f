"""Records at random places, for any trainer: NumPy values, without TensorFlow and PyArrow."""
