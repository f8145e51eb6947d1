"""What the consoles share: who may enter, which requests count, and the frame of every page."""
