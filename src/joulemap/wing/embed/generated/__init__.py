"""Code that `make rows` writes from the headers of queries and the signatures of questions; do not edit."""
