"""Coverage-guided fuzzing of what reads untrusted bytes, with atheris; `targets` says of what."""
