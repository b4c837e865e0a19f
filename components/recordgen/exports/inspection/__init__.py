"""``recordgen inspect``."""
