"""The own tests of the clients for queues and blobs, run against Asterism."""
