"""Inputs that failed once, and sources changed at random, for the readers of untrusted bytes."""
