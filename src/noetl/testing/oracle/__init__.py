"""An oracle: a slow and obvious model says what must come of a playbook, and the engine is held to it."""
