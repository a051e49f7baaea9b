"""Trials that try to lose data, to lock people out and to surprise (`make campaign`).

A kind is one way to try. Each of its trials draws everything from its own random numbers, so that kind, seed and number
say what happens. Trials run in workers, processes that may crash or hang without taking the campaign along.
"""
