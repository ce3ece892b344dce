-- Queries that write. A single `VALUES (…)` may be repeated for many rows; one that begins with NULL does nothing.

-- name: current
-- One row whatever is asked: every row that is fetched costs a change of threads.
SELECT
  (SELECT json_group_object(id, json_array(x, (SELECT coalesce(max(seq), 0) FROM event WHERE event.x = execution.x)))
   FROM execution WHERE id IN (SELECT value FROM json_each(?1))),
  (SELECT json_group_object(key, id)
   FROM start JOIN execution USING (x) WHERE key IN (SELECT value FROM json_each(?2))),
  (SELECT coalesce(max(x), 0) FROM execution);

-- name: begin_executions
INSERT INTO execution (
  x, id, started_at,
  status, path, playbook, namespace, parent, root, labels, priority, fair_key,
  next_wake, ended_at, expires_at, forked_from, served
)
SELECT * FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) WHERE column1 IS NOT NULL;

-- name: describe_executions
UPDATE execution SET
  started_at = coalesce(new.column2, started_at),
  status = coalesce(new.column3, status),
  path = coalesce(new.column4, path),
  playbook = coalesce(new.column5, playbook),
  namespace = coalesce(new.column6, namespace),
  parent = coalesce(new.column7, parent),
  root = coalesce(new.column8, root),
  labels = coalesce(new.column9, labels),
  priority = coalesce(new.column10, priority),
  fair_key = coalesce(new.column11, fair_key),
  next_wake = coalesce(new.column12, next_wake),
  ended_at = coalesce(new.column13, ended_at),
  expires_at = coalesce(new.column14, expires_at),
  forked_from = coalesce(new.column15, forked_from)
FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) AS new
WHERE x = new.column1;

-- name: insert_events
INSERT INTO event (x, seq, ts, kind, v, body, enc, checksum)
SELECT * FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?)) WHERE column1 IS NOT NULL;

-- name: insert_starts
INSERT INTO start (key, x)
SELECT * FROM (VALUES (?, ?)) WHERE column1 IS NOT NULL;

-- name: set_timers
INSERT OR REPLACE INTO timer (x, key, due)
SELECT * FROM (VALUES (?, ?, ?)) WHERE column1 IS NOT NULL;

-- name: clear_timers
DELETE FROM timer WHERE (x, key) IN (VALUES (?, ?));

-- name: set_outbox
INSERT OR REPLACE INTO outbox (x, key, body)
SELECT * FROM (VALUES (?, ?, ?)) WHERE column1 IS NOT NULL;

-- name: clear_outbox
DELETE FROM outbox WHERE (x, key) IN (VALUES (?, ?));

-- name: set_ready
INSERT OR REPLACE INTO ready (x, key, pool, kinds, priority)
SELECT * FROM (VALUES (?, ?, ?, ?, ?)) WHERE column1 IS NOT NULL;

-- name: clear_ready
DELETE FROM ready WHERE (x, key) IN (VALUES (?, ?));

-- name: set_leases
INSERT OR REPLACE INTO lease (x, key, session, fence)
SELECT * FROM (VALUES (?, ?, ?, ?)) WHERE column1 IS NOT NULL;

-- name: clear_leases
DELETE FROM lease WHERE (x, key) IN (VALUES (?, ?));

-- name: set_served
UPDATE execution SET served = ? WHERE x = ?;

-- name: sent
DELETE FROM outbox WHERE id IN (SELECT value FROM json_each(?));

-- name: send
INSERT INTO inbox (x, body) SELECT x, ? FROM execution WHERE id = ? RETURNING id;

-- name: take
DELETE FROM inbox WHERE id IN (SELECT value FROM json_each(?));

-- name: put_snapshot
INSERT OR REPLACE INTO snapshot (x, seq, format, body, checksum) VALUES (?, ?, ?, ?, ?);

-- name: thin_snapshots
DELETE FROM snapshot WHERE x = ?1 AND seq NOT IN (
  SELECT seq FROM snapshot WHERE x = ?1 ORDER BY seq DESC LIMIT 2
);

-- name: put_playbook
INSERT OR IGNORE INTO playbook (hash, document, checksum) VALUES (?, ?, ?);

-- name: last_position
SELECT coalesce(max(pos), 0) FROM event;

-- name: keep_position
INSERT OR IGNORE INTO event (pos, x, seq, ts, kind, enc, v, body) VALUES (?1, 0, ?1, 0, 0, 1, 0, x'');

-- name: forget_positions
DELETE FROM event WHERE x = 0 AND seq < ?;

-- name: delete_event
DELETE FROM event WHERE x = ?;

-- name: delete_start
DELETE FROM start WHERE x = ?;

-- name: delete_inbox
DELETE FROM inbox WHERE x = ?;

-- name: delete_snapshot
DELETE FROM snapshot WHERE x = ?;

-- name: delete_timer
DELETE FROM timer WHERE x = ?;

-- name: delete_outbox
DELETE FROM outbox WHERE x = ?;

-- name: delete_ready
DELETE FROM ready WHERE x = ?;

-- name: delete_lease
DELETE FROM lease WHERE x = ?;

-- name: delete_execution
DELETE FROM execution WHERE x = ?;

-- name: put_credential
-- Nothing where another one is sealed with another key.
INSERT INTO credential (name, kind, key_id, wrapped_key, body, created_at, updated_at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
WHERE NOT EXISTS (SELECT 1 FROM credential WHERE key_id <> ?3)
ON CONFLICT (name) DO UPDATE SET
  kind = excluded.kind, key_id = excluded.key_id, wrapped_key = excluded.wrapped_key,
  body = excluded.body, updated_at = excluded.updated_at
RETURNING name;

-- name: delete_credential
DELETE FROM credential WHERE name = ? RETURNING name;

-- name: rewrap_credential
UPDATE credential SET key_id = ?2, wrapped_key = ?3 WHERE name = ?1;

-- name: put_blob
INSERT OR REPLACE INTO blob (name, data) VALUES (?, zeroblob(?));

-- name: delete_blobs
DELETE FROM blob WHERE name IN (SELECT value FROM json_each(?));

-- name: next_catalog_number
INSERT INTO catalog_number (path, version) VALUES (?, 1)
ON CONFLICT (path) DO UPDATE SET version = version + 1 RETURNING version;

-- name: put_catalog_entry
INSERT INTO catalog (path, version, hash, label, dialect, source, canonical, created_at, created_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: keep_catalog_entry
INSERT OR IGNORE INTO catalog (path, version, hash, label, dialect, source, canonical, created_at, created_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: keep_catalog_number
INSERT INTO catalog_number (path, version) VALUES (?, ?)
ON CONFLICT (path) DO UPDATE SET version = max(version, excluded.version);

-- name: delete_catalog_entries
DELETE FROM catalog WHERE path = ?1 AND (version = ?2 OR ?2 = 0);

-- name: put_api_token
INSERT INTO api_token (name, hash, role, created_at, created_by, expires_at, revoked_at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
WHERE NOT EXISTS (
  SELECT 1 FROM api_token WHERE name = ?1 AND revoked_at = 0 AND (expires_at = 0 OR expires_at > ?4)
)
RETURNING name;

-- name: revoke_api_token
UPDATE api_token SET revoked_at = ?2 WHERE name = ?1 AND revoked_at = 0 RETURNING name;

-- name: put_audit
INSERT INTO audit (at, by, role, action, target, address, status)
SELECT * FROM (VALUES (?, ?, ?, ?, ?, ?, ?)) WHERE column1 IS NOT NULL;
