"""The official client's own tests, run against Asterism."""
