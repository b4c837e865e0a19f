"""Payloads: fetched bytes → checked, normalised bytes that a trainer can trust."""
