"""Tables: columns with types → features.

roles.py        what a column holds: path, label, target, …
schema.py       columns as a user declares them
columns.py      columns as they were found or declared, their types and values
arrow.py        lines → Arrow columns
csv_fields.py   the fields of a line of CSV
examples.py     Arrow columns → serialized examples
"""
