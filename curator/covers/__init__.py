"""Views that cover all pairs of features."""
