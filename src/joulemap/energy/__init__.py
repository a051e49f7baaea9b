"""Mechanisms that architectures share: action counts x reference table = ledger."""
