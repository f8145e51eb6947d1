"""The curator: drives a study's recipe over the parties' private answers and publishes the release."""
