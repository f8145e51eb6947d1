"""Exact counts and scores of rows; what is here is private until noise is added."""
