"""The private queries, one class each: what it asks, how large it is, its sensitivity and noise, and its answer."""
