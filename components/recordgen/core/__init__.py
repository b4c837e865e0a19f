"""The core: from rows to committed shards, for any task and any format.

rows/      rows, and the forms in which steps pass them on
planning/  placement of rows: duplicates, splits, shards
shards/    examples of a shard, and its file
records/   the framing of records, and files of them
runs/      staging, resume and commit of a run
flow/      the steps of a conversion, in this process or by another runner
dataset/   dataset.json: what an output holds
ordered    work of threads, in the order of its items
progress   what is done of a run or an export, and who receives it
"""
