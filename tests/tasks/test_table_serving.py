"""The names of the columns in a request."""

import keyword

from hypothesis import given
from hypothesis import strategies as st

from recordgen.tasks.tables.reading import input_names


def test_names_are_kept_where_tensorflow_allows_them():
    """Other characters become ``_``, and no two columns share a name."""
    columns = ["alcohol", "fixed acidity", "2nd", "class", "a-b", "a_b", "größe", "self", ""]
    expected = [
        *("alcohol", "fixed_acidity", "column_2nd", "class_", "a_b", "a_b_", "größe", "self_"),
        "column_",
    ]
    assert input_names(columns) == dict(zip(columns, expected, strict=True))


@given(st.lists(st.text(), unique=True, max_size=6))
def test_every_header_has_names_of_its_own(columns):
    """Any columns become different arguments of a function."""
    names = list(input_names(columns).values())
    assert len({*names}) == len(columns)
    assert all(name.isidentifier() and not keyword.iskeyword(name) for name in names)
