"""Conditions under which the other of two chips would be better."""
