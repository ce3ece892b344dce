"""How expressions are written: from source text to tokens, a syntax tree, and code."""
