"""Large values leave the events: what is kept of them, and how they come back."""
