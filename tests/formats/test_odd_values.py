"""One odd value in a document of any format ends in a reject or in an error of Recordgen's own."""

import pytest

from tests.formats.odd_values import NAMES, faults

#: Of about 47,000 documents; a step of 1 reads all of them.
_STEP = 47


@pytest.mark.parametrize("name", NAMES)
def test_an_odd_value_is_no_traceback(name, tmp_path):
    """Each place of a sample of each format has each of many values in turn; a part is read."""
    count, found = faults(name, tmp_path, step=_STEP)
    assert count
    assert not found
