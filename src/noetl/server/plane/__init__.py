"""The worker plane of a server: sessions, leases, and who gets which run."""
