"""The own tests of the clients for queues, topics and hubs, run against Asterism."""
