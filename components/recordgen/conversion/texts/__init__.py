"""Results as people read them: texts, warnings, and events of the log."""
