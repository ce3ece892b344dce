"""THE expression environment: everything that playbooks write in `{{ … }}` is read and evaluated here."""
