"""Parts of ``optimal_peers.py``: the problems, and how peers state and solve them."""
