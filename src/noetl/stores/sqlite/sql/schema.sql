-- What a store looks like in SQLite.
--
-- `event` is the truth: the rows of all executions in the order of their commits. An execution has a
-- short local number `x`, so that a row costs few bytes; `execution` says which id has which number.
-- Truth are also `start`, `playbook`, `inbox`, `credential`, `blob`, `catalog`, `api_token` and `audit`. Everything else in
-- `execution`, and `timer`, `outbox`, `ready` and `lease`, follows from the rows and can be rebuilt; a `snapshot`
-- only saves folding. A process that has an execution to itself writes none of the last four: `served` is 0 then.
--
-- An append writes nothing but its events, unless it changes a fact: the fewer pages a commit touches, the
-- sooner it is durable. So an execution's version and last change are read from its last event.
--
-- A checksum says that bytes are those that were written (`noetl.stores.checksums`); what older releases wrote has none.
--
-- Times are microseconds since 1970, UTC. An empty text and 0 stand for "none".
-- A change here is also a new file in migrations/; a test proves that both lead to the same schema.

CREATE TABLE execution (
  x INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  started_at INTEGER NOT NULL,         -- the ts of its first event; of a fork, when it was made
  status TEXT NOT NULL,
  path TEXT NOT NULL,
  playbook TEXT NOT NULL,
  namespace TEXT NOT NULL,
  parent TEXT NOT NULL,
  root TEXT NOT NULL,
  labels TEXT NOT NULL,                -- a JSON object of texts
  priority INTEGER NOT NULL,
  fair_key TEXT NOT NULL,
  next_wake INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  forked_from TEXT NOT NULL DEFAULT '',
  served INTEGER NOT NULL DEFAULT 0    -- 1 if its timers, ready and leased runs are kept here
) STRICT;

CREATE INDEX execution_status ON execution (status, x);
CREATE INDEX execution_path ON execution (path);
CREATE INDEX execution_parent ON execution (parent) WHERE parent <> '';
CREATE INDEX execution_ended ON execution (ended_at) WHERE ended_at > 0;

-- A position that was seen in the feed must not come again. AUTOINCREMENT would write one more page with
-- every commit; instead, where the last event is deleted, a row of execution 0, which is none, takes its place.
CREATE TABLE event (
  pos INTEGER PRIMARY KEY,
  x INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  enc INTEGER NOT NULL,                -- 1 if it is the last event of its append, plus 2 times the encoding: 0
  v INTEGER NOT NULL,                  -- the format of the body
  body BLOB NOT NULL,
  checksum INTEGER,                    -- of all events of its append, if it is the last one
  UNIQUE (x, seq)
) STRICT;

CREATE TABLE start (
  key TEXT PRIMARY KEY,
  x INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;

CREATE TABLE playbook (
  hash TEXT NOT NULL UNIQUE,
  document BLOB NOT NULL,
  checksum INTEGER
) STRICT;

CREATE TABLE inbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  x INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;

CREATE INDEX inbox_x ON inbox (x);

CREATE TABLE snapshot (
  x INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  format INTEGER NOT NULL,
  body BLOB NOT NULL,
  checksum INTEGER NOT NULL,
  UNIQUE (x, seq)
) STRICT;

CREATE TABLE timer (
  x INTEGER NOT NULL,
  key TEXT NOT NULL,
  due INTEGER NOT NULL,
  PRIMARY KEY (x, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX timer_due ON timer (due);

CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  x INTEGER NOT NULL,
  key TEXT NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (x, key)
) STRICT;

-- Runs that a worker may claim, in the order in which they became so. `key` names the run.
CREATE TABLE ready (
  id INTEGER PRIMARY KEY,
  x INTEGER NOT NULL,
  key TEXT NOT NULL,
  pool TEXT NOT NULL,
  kinds TEXT NOT NULL,                 -- of the tools that its worker must have, with commas
  priority INTEGER NOT NULL,
  UNIQUE (x, key)
) STRICT;

-- Runs that a worker process owns.
CREATE TABLE lease (
  x INTEGER NOT NULL,
  key TEXT NOT NULL,
  session TEXT NOT NULL,
  fence INTEGER NOT NULL,
  PRIMARY KEY (x, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE credential (
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  key_id TEXT NOT NULL,                -- names the key that opens wrapped_key
  wrapped_key BLOB NOT NULL,           -- opens body
  body BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Results of small deployments, which keep them here and not in files.
CREATE TABLE blob (
  name TEXT NOT NULL UNIQUE,
  data BLOB NOT NULL
) STRICT;

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
