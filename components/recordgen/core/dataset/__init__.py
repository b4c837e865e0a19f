"""The parts of a finished dataset: manifest, vocabulary and splits."""
