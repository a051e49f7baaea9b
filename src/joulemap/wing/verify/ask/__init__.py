"""Questions on measurements of others, and on calls in this program, beside their predictions."""
