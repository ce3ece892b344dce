"""These tests need Podman, and that it may run containers here."""

from tests.podman.podman_image import why_podman_is_not_used

collect_ignore_glob = ["test_*.py"] if why_podman_is_not_used() else []
