"""The options of a collection, checked and completed as they are stored."""
