"""Administration of messaging over HTTP: the Atom of Service Bus, JSON as of the resource manager, and Config.json."""
