"""Fuzz one reader: `python -m tests.fuzz decode --seconds 600`.

Inputs come from `tests/fuzz/corpus/TARGET` or `tests/fuzz/seeds.py`, and from mutations that reach
new lines of the package. An input that fails is written next to the folder `--found`; add
it to the corpus, and fix the reader.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["recordgen"]):
    from tests.fuzz.seeds import SEEDS
    from tests.fuzz.targets import CORPUS, TARGETS


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60, help="at most; 0: no limit")
    parser.add_argument("--runs", type=int, default=-1, help="inputs at most; -1: no limit")
    parser.add_argument("--seed", type=int, default=0, help="0: a different one each time")
    parser.add_argument("--found", help="folder for new inputs; default: a temporary folder")
    given = parser.parse_args()
    found = given.found or tempfile.mkdtemp(prefix="fuzz-")
    os.makedirs(found, exist_ok=True)
    corpus = [str(CORPUS / given.target)]
    if given.target in SEEDS:
        corpus.append(tempfile.mkdtemp(prefix="seeds-"))
        for name, data in SEEDS[given.target]().items():
            Path(corpus[-1], name).write_bytes(data)
    arguments = [
        found,
        *corpus,
        f"-max_total_time={given.seconds}",
        f"-runs={given.runs}",
        f"-seed={given.seed}",
        f"-artifact_prefix={found.rstrip('/')}-",
        "-timeout=30",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *arguments], TARGETS[given.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
