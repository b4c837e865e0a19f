"""Beam's runners, which carry a graph of steps to other processes and machines.

carrier.py      a graph as a pipeline of Beam
workers.py      processes that may die, and what they leave
runners.py      what each runner needs, lacks and is told
"""
