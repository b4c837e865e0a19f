"""Scripts that write no blanks between words."""

from __future__ import annotations

#: The characters of scripts that write no blanks between words, without their marks and digits, for
#: a regular expression's brackets. They are spelled out, not looked up in a Unicode database:
#: Python's and TensorFlow's databases differ in age, and training and serving must cut texts alike.
UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b"  # Han, from its radicals on
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
    "\u3041-\u3096\u309d-\u309f"  # Hiragana
    "\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f"  # Katakana
    "\u0e01-\u0e30\u0e32-\u0e33\u0e40-\u0e46"  # Thai
    "\u0e81-\u0eb0\u0eb2-\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf"  # Lao
    "\u1780-\u17b3\u17d7\u17dc"  # Khmer
    "\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065-\u1066"  # Myanmar
    "\u106e-\u1070\u1075-\u1081\u108e\u109e-\u109f\ua9e0-\ua9e4\ua9e6-\ua9ef"
    "\ua9fa-\ua9fe\uaa60-\uaa7a\uaa7e-\uaa7f"
)
