"""The conversion as a graph of steps, independent of the runner."""
