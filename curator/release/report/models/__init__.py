"""The sections of a report that show a model, one module for each kind of model."""
