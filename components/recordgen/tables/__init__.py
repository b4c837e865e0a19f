"""Tables: columns with types → features.

schema.py       columns as a user declares them
columns.py      columns as they were found or declared, their types and values
arrow.py        lines → Arrow columns; long_fields.py: fields too long for that
examples.py     Arrow columns → serialized examples
"""
