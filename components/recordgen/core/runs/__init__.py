"""A run on an output: staging, progress, commit, resume.

staging.py    the staging folder
lease.py      allows one run at a time
heartbeat.py  progress files that workers write
commit.py     opens a run, and moves its shards to the output, ``dataset.json`` last
parts.py      a run in parts, whose plan waits for its workers and its commit
resume.py     keeps the shards that an interrupted run finished
counters.py   names of a run's counts
"""
