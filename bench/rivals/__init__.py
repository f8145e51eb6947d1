"""The rivals of the papers' figures: methods that answer marginals, or train one classifier, and publish no rows.

NOT private across parties, in memory: one place sees all rows, and noise is floats from a seeded generator. Each rival
is accounted for as Synod's own methods are: neighbours replace one row, and the number of rows is public.
"""

LABEL = "not private across parties, in memory"
