"""Commands that show how the server is doing, and those that steer it; `table.py` puts their rows together."""
