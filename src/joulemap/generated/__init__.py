"""Code that `make rows` writes from the headers of queries and the signatures of questions; do not edit.

`package`, `records` and the other stubs list the names of the public modules, `question` and `shortcut` declare the
questions as methods and as functions.
"""
