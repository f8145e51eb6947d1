"""Models fitted to released numbers."""
