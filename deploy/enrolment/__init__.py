"""How an organization joins: one file from the coordinator, and one command that makes the rest."""
