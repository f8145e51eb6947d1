"""One recipe a file: a publishing method as an async function over the private queries, with its part of the report."""
