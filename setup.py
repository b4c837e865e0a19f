"""Builds the package for tools that call `python setup.py`, such as Beam's `--setup_file`.

Everything there is to say about the package stands in `pyproject.toml`.
"""

from setuptools import setup

setup()
