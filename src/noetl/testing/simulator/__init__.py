"""A simulator: the real server and workers, and all that can go wrong around them."""
