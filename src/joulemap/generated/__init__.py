"""Code that `make rows` writes from the headers of queries and the signatures of questions; do not edit.

A module of rows belongs to a folder of `queries`. The stubs `package`, `records` and others list the names of the
public modules; `question` and `shortcut` declare the questions as methods and as functions.
"""
