"""Build the package for tools that call `python setup.py`, such as Beam's `--setup_file`.

`pyproject.toml` has the package's metadata.
"""

from setuptools import setup

setup()
