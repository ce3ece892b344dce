"""These tests need PgBouncer."""

from tests.pgbouncer.pooler import why_pgbouncer_is_not_used

collect_ignore_glob = ["test_*.py"] if why_pgbouncer_is_not_used() else []
