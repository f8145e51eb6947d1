"""Models that a release may contain, and the public numbers that bound them."""
