-- Sealed credentials.

CREATE TABLE credential (
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  key_id TEXT NOT NULL,                -- names the key that opens wrapped_key
  wrapped_key BLOB NOT NULL,           -- opens body
  body BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
