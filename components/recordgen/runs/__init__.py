"""One run on one output: staged, seen, resumed, committed.

staging.py    the folder beside the output in which a run works
lease.py      one run at a time
heartbeat.py  what workers leave there, and progress.py: who looks at it
commit.py     finished shards → the output, ``dataset.json`` last
resume.py     shards that an interrupted run finished
counters.py   the counts of a run
results.py    what a run hands back
"""
