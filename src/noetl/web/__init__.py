"""The page of the server: `scripts/web` builds it into `page`."""
