"""The conversion as a Beam pipeline. No other room knows Beam.

graph.py        read → resolve → plan → work on shards, put together
steps.py        the steps of rows
runners.py      what each runner needs, lacks and is told
running.py      run a pipeline; what workers left as their error is raised
"""
