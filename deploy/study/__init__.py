"""Drafting and forecasting studies."""
