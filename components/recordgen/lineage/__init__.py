"""Where datasets and models come from: events for OpenLineage, and a file inside each model."""
