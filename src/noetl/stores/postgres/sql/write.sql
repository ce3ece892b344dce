-- Queries that write, but for commits.

-- name: put_version
WITH forgotten AS (DELETE FROM store) INSERT INTO store (version, xact_shift) VALUES (:version, :shift);

-- name: put_shift
UPDATE store SET xact_shift = :shift;

-- name: lock_execution
SELECT version FROM execution WHERE id = :execution_id FOR UPDATE;

-- name: set_served
UPDATE execution SET served = :served WHERE id = :execution_id;

-- name: put_timers
INSERT INTO timer (execution_id, key, due) SELECT :execution_id, * FROM unnest(:keys::text[], :due::bigint[])
ON CONFLICT (execution_id, key) DO UPDATE SET due = excluded.due, taken_until = DEFAULT;

-- name: put_outbox
INSERT INTO outbox (execution_id, key, body) SELECT :execution_id, * FROM unnest(:keys::text[], :bodies::bytea[])
ON CONFLICT (execution_id, key) DO UPDATE SET id = DEFAULT, body = excluded.body, taken_until = DEFAULT;

-- name: put_ready
INSERT INTO ready (execution_id, key, pool, kinds, priority)
SELECT :execution_id, * FROM unnest(:keys::text[], :pools::text[], :kinds::text[], :priorities::bigint[]);

-- name: put_leases
INSERT INTO lease (execution_id, key, session, fence)
SELECT :execution_id, * FROM unnest(:keys::text[], :sessions::text[], :fences::bigint[]);

-- name: drop_timers
DELETE FROM timer WHERE execution_id = :execution_id AND key = ANY(:keys::text[]);

-- name: drop_outbox
DELETE FROM outbox WHERE execution_id = :execution_id AND key = ANY(:keys::text[]);

-- name: sent
DELETE FROM outbox WHERE id = ANY(:ids::bigint[]);

-- name: send
INSERT INTO inbox (execution_id, body) SELECT id, :body FROM execution WHERE id = :execution_id RETURNING id;

-- name: take
DELETE FROM inbox WHERE id = ANY(:ids::bigint[]);

-- name: put_snapshot
INSERT INTO snapshot (execution_id, seq, format, body, checksum) VALUES (:execution_id, :seq, :format, :body, :checksum)
ON CONFLICT (execution_id, seq) DO UPDATE SET format = excluded.format, body = excluded.body, checksum = excluded.checksum;

-- name: thin_snapshots
DELETE FROM snapshot WHERE execution_id = :execution_id AND seq NOT IN (
  SELECT seq FROM snapshot WHERE execution_id = :execution_id ORDER BY seq DESC LIMIT 2
);

-- name: forget_snapshot
DELETE FROM snapshot WHERE execution_id = :execution_id AND seq = ANY(:seqs::integer[]);

-- name: put_playbook
INSERT INTO playbook (hash, document, checksum) VALUES (:hash, :document, :checksum) ON CONFLICT DO NOTHING;

-- name: delete_event
DELETE FROM event WHERE execution_id = :execution_id;

-- name: delete_inbox
DELETE FROM inbox WHERE execution_id = :execution_id;

-- name: delete_snapshot
DELETE FROM snapshot WHERE execution_id = :execution_id;

-- name: delete_timer
DELETE FROM timer WHERE execution_id = :execution_id;

-- name: delete_outbox
DELETE FROM outbox WHERE execution_id = :execution_id;

-- name: delete_ready
DELETE FROM ready WHERE execution_id = :execution_id;

-- name: delete_lease
DELETE FROM lease WHERE execution_id = :execution_id;

-- name: delete_execution
DELETE FROM execution WHERE id = :execution_id;

-- name: lock_credentials
-- All that are there must stay sealed with one key: who adds one waits for who else does.
LOCK TABLE credential IN SHARE ROW EXCLUSIVE MODE;

-- name: put_credential
-- Nothing where another one is sealed with another key.
INSERT INTO credential (name, kind, key_id, wrapped_key, body, created_at, updated_at)
SELECT :name::text, :kind::text, :key_id::text, :wrapped_key::bytea, :body::bytea, :created_at::bigint, :updated_at::bigint
WHERE NOT EXISTS (SELECT FROM credential WHERE key_id <> :key_id)
ON CONFLICT (name) DO UPDATE SET
  kind = excluded.kind, key_id = excluded.key_id, wrapped_key = excluded.wrapped_key,
  body = excluded.body, updated_at = excluded.updated_at
RETURNING name;

-- name: delete_credential
DELETE FROM credential WHERE name = :name RETURNING name;

-- name: rewrap_credentials
UPDATE credential SET key_id = new.key_id, wrapped_key = new.wrapped_key
FROM unnest(:names::text[], :key_ids::text[], :wrapped_keys::bytea[]) AS new(name, key_id, wrapped_key)
WHERE credential.name = new.name;

-- name: put_blob
INSERT INTO blob (name, data) VALUES (:name, :data) ON CONFLICT (name) DO UPDATE SET data = excluded.data;

-- name: delete_blobs
DELETE FROM blob WHERE name = ANY(:names::text[]);

-- name: lock_path
-- Versions of one path are numbered one after the other, whoever registers them.
INSERT INTO catalog_number (path, version) VALUES (:path, 0)
ON CONFLICT (path) DO UPDATE SET version = catalog_number.version;

-- name: next_catalog_number
UPDATE catalog_number SET version = version + 1 WHERE path = :path RETURNING version;

-- name: put_catalog_entry
INSERT INTO catalog (path, version, hash, label, dialect, source, canonical, created_at, created_by)
VALUES (:path, :version, :hash, :label, :dialect, :source, :canonical, :created_at, :created_by);

-- name: keep_catalog_entry
INSERT INTO catalog (path, version, hash, label, dialect, source, canonical, created_at, created_by)
VALUES (:path, :version, :hash, :label, :dialect, :source, :canonical, :created_at, :created_by)
ON CONFLICT (path, version) DO NOTHING;

-- name: keep_catalog_number
UPDATE catalog_number SET version = greatest(version, :version) WHERE path = :path;

-- name: delete_catalog_entries
DELETE FROM catalog WHERE path = :path AND (version = :version OR :version = 0);

-- name: lock_tokens
LOCK TABLE api_token IN SHARE ROW EXCLUSIVE MODE;

-- name: put_api_token
INSERT INTO api_token (name, hash, role, created_at, created_by, expires_at, revoked_at)
SELECT :name::text, :hash::text, :role::text, :created_at::bigint, :created_by::text, :expires_at::bigint, :revoked_at::bigint
WHERE NOT EXISTS (
  SELECT FROM api_token WHERE name = :name AND revoked_at = 0 AND (expires_at = 0 OR expires_at > :created_at)
)
RETURNING name;

-- name: revoke_api_token
UPDATE api_token SET revoked_at = :at WHERE name = :name AND revoked_at = 0 RETURNING name;

-- name: put_audit
INSERT INTO audit (at, by, role, action, target, address, status)
SELECT * FROM unnest(
  :at::bigint[], :by::text[], :roles::text[], :actions::text[], :targets::text[], :addresses::text[], :statuses::integer[]
);

-- name: rewrite
UPDATE execution SET
  started_at = :started_at, status = :status, path = :path, playbook = :playbook, namespace = :namespace,
  parent = :parent, root = :root, labels = :labels, priority = :priority, fair_key = :fair_key,
  next_wake = :next_wake, ended_at = :ended_at, expires_at = :expires_at, forked_from = :forked_from
WHERE id = :execution_id;

-- name: use_database
SELECT pg_try_advisory_lock_shared(hashtext('noetl server'), hashtext(current_schema()));

-- name: have_database
SELECT pg_try_advisory_lock(hashtext('noetl server'), hashtext(current_schema()));

-- name: has_lock
SELECT EXISTS (
  SELECT FROM pg_locks
  WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint = (hashtext('noetl server')::bigint & 4294967295) AND objid::bigint = (hashtext(current_schema())::bigint & 4294967295)
);

-- name: take_timers
-- By `ctid`, here and below: rows that are locked stay where they are, and no plan can take a longer way to them.
UPDATE timer SET taken_until = clock_timestamp() + :hold::interval
WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM timer WHERE due <= :until AND taken_until < clock_timestamp()
  ORDER BY due LIMIT :limit FOR UPDATE SKIP LOCKED
))
RETURNING due, execution_id, key;

-- name: take_outbox
UPDATE outbox SET taken_until = clock_timestamp() + :hold::interval
WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM outbox WHERE taken_until < clock_timestamp() ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED
))
RETURNING id, execution_id, key, body;

-- name: take_inbox
UPDATE inbox SET taken_until = clock_timestamp() + :hold::interval
WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM inbox WHERE taken_until < clock_timestamp() ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED
))
RETURNING id, execution_id, body;

-- name: take_ready
UPDATE ready SET taken_until = clock_timestamp() + :hold::interval
WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM ready
  WHERE pool = :pool AND string_to_array(kinds, ',') <@ :kinds::text[] AND taken_until < clock_timestamp()
  ORDER BY priority DESC, id LIMIT :limit FOR UPDATE SKIP LOCKED
))
RETURNING id, execution_id, key, pool, kinds, priority;

-- name: lock_session
SELECT connection, token, taken_until > '-infinity' AS taken FROM session WHERE id = :session FOR UPDATE;

-- name: put_session
INSERT INTO session (id, server, connection, token, worker, ttl, expires_at)
VALUES (:session, :server, :connection, :token, :worker, :ttl::interval, clock_timestamp() + :ttl::interval)
ON CONFLICT (id) DO UPDATE SET
  server = excluded.server, connection = excluded.connection, token = excluded.token, worker = excluded.worker,
  ttl = excluded.ttl, expires_at = excluded.expires_at;

-- name: beat_sessions
UPDATE session SET expires_at = clock_timestamp() + ttl
WHERE id = ANY(:sessions::text[]) AND server = :server AND taken_until = '-infinity'
RETURNING id;

-- name: end_session
UPDATE session SET expires_at = '-infinity' WHERE id = :session AND server = :server;

-- name: find_sessions
-- Of leases that no session has: they live for one more ttl.
INSERT INTO session (id, server, connection, token, worker, ttl, expires_at)
SELECT DISTINCT lease.session, '', 0, '', '', :ttl::interval, clock_timestamp() + :ttl::interval
FROM lease WHERE NOT EXISTS (SELECT FROM session WHERE id = lease.session)
ON CONFLICT DO NOTHING;

-- name: spare_sessions
UPDATE session SET expires_at = clock_timestamp() + ttl
WHERE expires_at < clock_timestamp() AND expires_at > '-infinity' AND taken_until = '-infinity';

-- name: take_dead_sessions
UPDATE session SET taken_until = clock_timestamp() + :hold::interval
WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM session WHERE expires_at < clock_timestamp() AND taken_until < clock_timestamp()
  LIMIT :limit FOR UPDATE SKIP LOCKED
))
RETURNING id, worker;

-- name: forget_session
DELETE FROM session WHERE id = :session AND taken_until > '-infinity' AND NOT EXISTS (SELECT FROM lease WHERE session = :session);

-- name: take_turn
INSERT INTO turn (name, server, expires_at) VALUES (:name, :server, clock_timestamp() + :hold::interval)
ON CONFLICT (name) DO UPDATE SET server = excluded.server, expires_at = excluded.expires_at
WHERE turn.server = excluded.server OR turn.expires_at < clock_timestamp()
RETURNING name;

-- name: end_turn
DELETE FROM turn WHERE name = :name AND server = :server;
