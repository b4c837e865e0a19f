"""``python -m recordgen``: the command, where its script is not on the path."""

from recordgen.cli import exit_main

if __name__ == "__main__":
    exit_main()
