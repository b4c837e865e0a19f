"""A format of another package: albums of labelled images."""
