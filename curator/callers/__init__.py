"""Who may call the curator, and how many calls at once."""
