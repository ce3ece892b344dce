"""A simulator of the engine: the real kernel, store and codec, and all that can go wrong around them."""
