"""Beam's runners, which run a graph of steps in other processes and on other machines."""
