"""The conversion as a graph of steps, independent of the runner.

runner.py        interfaces of steps and of runners, which run a graph
graph.py         the graph: read → resolve → plan → work on shards
steps.py         its steps
local_runner.py  runs a graph in this process
running.py       runs a graph and reports its progress
"""
