"""Conditions under which the other of two hardware would be better."""
