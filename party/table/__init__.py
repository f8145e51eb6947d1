"""The table, the only thing that holds rows: opened, encoded once, and kept as a snapshot."""
