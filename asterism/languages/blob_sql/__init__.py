"""Quick query: SELECT over the records of one blob, delimited text or JSON, as its bytes come in."""
