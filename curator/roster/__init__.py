"""What becomes of the parties of a roster: some are lost, and keys are rotated."""
