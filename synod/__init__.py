"""Synod: organizations that may not show each other their rows publish one private synthetic table together."""
