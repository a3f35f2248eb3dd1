"""Import of graphs: files of vertices and edges become the documents that a graph is stored as."""
