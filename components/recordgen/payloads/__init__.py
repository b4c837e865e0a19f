"""Payloads: fetch, check and normalise the bytes of images."""
