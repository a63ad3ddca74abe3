"""Whether configurations are free of collisions, and how far from them: kernels of one robot for any world."""
