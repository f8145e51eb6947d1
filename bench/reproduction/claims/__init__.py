"""The papers' claims, and how each is judged."""
