"""Beam's runners, which run a graph of steps in other processes and on other machines.

beam_runner.py  runs a graph as a Beam pipeline
workers.py      ends a run whose worker processes die
runners.py      names, flags and checks of the runners
"""
