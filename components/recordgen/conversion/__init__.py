"""Import files → a dataset: ``recordgen.convert``, ``check``, ``plan`` and ``recordgen.parts``."""
