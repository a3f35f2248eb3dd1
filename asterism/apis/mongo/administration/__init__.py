"""Commands about databases and collections, by family; `table.py` puts their rows together."""
