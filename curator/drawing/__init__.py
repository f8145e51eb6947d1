"""New rows of a published model, also under conditions."""
