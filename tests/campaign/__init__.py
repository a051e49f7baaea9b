"""Randomized trials that attempt to lose data, to block users or to run foreign code (`make campaign`).

A kind is one method. Each of its trials has its own random numbers, so that kind, seed and number reproduce it. Trials
run in workers, processes that may crash or hang without ending the campaign.
"""
