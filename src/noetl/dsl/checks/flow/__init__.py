"""Which names are set where they are read.

A must-analysis over the steps and, inside each step, over its pipeline: a name is set at a place if
every way there sets it. Three assumptions keep its findings worth reading:

- An arc is taken after a success unless its guard asks how the step ended, a rule likewise.
- A loop runs at least once.
- A mapping written as a whole has every key that is read from it.
"""
