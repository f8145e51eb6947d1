"""The curator operator's console."""
