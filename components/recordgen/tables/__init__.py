"""Tables: columns with types → features.

roles.py        the roles of columns: path, label, target, …
schema.py       columns that a user declares
columns.py      the columns of a table, inferred or declared, and their features
arrow.py        lines → Arrow columns
csv_fields.py   the fields of a line of CSV
stored.py       what a dataset says of its table
examples.py     Arrow columns → serialized examples
"""
