-- Registered playbooks, API tokens and the audit of a server.

CREATE TABLE catalog (
  path TEXT NOT NULL,
  version INTEGER NOT NULL,
  hash TEXT NOT NULL,                  -- of the canonical document
  label TEXT NOT NULL,                 -- its metadata.version
  dialect TEXT NOT NULL,
  source TEXT NOT NULL,
  canonical TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  PRIMARY KEY (path, version)
) STRICT;

-- The last number that each path has given: one that was deleted does not come again.
CREATE TABLE catalog_number (
  path TEXT PRIMARY KEY,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_token (
  hash TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX api_token_name ON api_token (name);

CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  by TEXT NOT NULL,
  role TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  address TEXT NOT NULL,
  status INTEGER NOT NULL
) STRICT;
