"""`synod party`: the party operator's verbs, one file for each kind of work."""
