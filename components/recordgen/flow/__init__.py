"""The conversion as a graph of steps, whoever carries it out.

carrier.py      what a step is, and what must carry it
graph.py        read → resolve → plan → work on shards, put together
steps.py        the steps of rows
in_process.py   carries the steps out here, one after the other
running.py      carry a graph out, watched
"""
