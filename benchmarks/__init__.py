"""`make bench`: how fast Asterism is, as ratios to bare building blocks and to a peer, measured in one run."""
