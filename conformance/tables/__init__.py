"""The own tests of the client for tables, run against Asterism."""
