"""Coverage-guided fuzzing, with atheris, of the readers of untrusted bytes in `targets`."""
