"""What is published: files and report."""
