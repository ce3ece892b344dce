-- Queries that only read. A line that ends with `-- if x` stands only when x is given.

-- name: store
SELECT version, xact_shift FROM store;

-- name: highest_xact
SELECT coalesce(max(xact), 0) AS highest, pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next FROM event;

-- name: clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: health
-- What holds the feed back is not only who writes: a snapshot that is kept, too.
SELECT
  current_setting('server_version') AS server,
  coalesce(extract(epoch FROM clock_timestamp() - oldest.xact_start), 0)::float8 AS oldest_transaction,
  coalesce(oldest.application_name || ' (' || oldest.usename || ')', '') AS oldest_owner,
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
  current_setting('max_connections')::integer AS max_connections,
  coalesce((SELECT n_dead_tup FROM pg_stat_user_tables WHERE schemaname = current_schema() AND relname = 'ready'), 0)
    AS dead_ready_rows
FROM (VALUES (1)) AS always
LEFT JOIN LATERAL (
  SELECT xact_start, application_name, usename FROM pg_stat_activity
  WHERE (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL) AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  ORDER BY xact_start LIMIT 1
) AS oldest ON true;

-- name: rows
-- From the end of the append before, to the end of the append that the last one wanted belongs to: only whole appends
-- can be checked.
SELECT seq, ts, kind, v, body, enc, checksum
FROM event
WHERE execution_id = :execution_id
  AND seq >= coalesce(
    (SELECT seq FROM event WHERE execution_id = :execution_id AND seq <= :after AND enc & 1 = 1
     ORDER BY seq DESC LIMIT 1), 0)
  AND seq <= coalesce(
    (SELECT seq FROM event WHERE execution_id = :execution_id AND seq >= :until AND enc & 1 = 1
     ORDER BY seq LIMIT 1), 2147483647)
ORDER BY seq;

-- name: unchecked_appends
SELECT count(*) FROM event WHERE enc & 1 = 1 AND checksum IS NULL;

-- name: feed
-- Up to the oldest transaction that runs: one that began before may still write below what is newer.
SELECT xact, pos, execution_id, seq, ts, kind, v, body, enc
FROM event
WHERE (xact, pos) > (:xact, :pos)
  AND xact < pg_snapshot_xmin(pg_current_snapshot())::text::bigint + :shift
ORDER BY xact, pos LIMIT :limit;

-- name: feed_end
SELECT xact, pos
FROM event
WHERE xact < pg_snapshot_xmin(pg_current_snapshot())::text::bigint + :shift
ORDER BY xact DESC, pos DESC LIMIT 1;

-- name: current
SELECT id, version, coalesce(start_key, '') AS start_key
FROM execution WHERE id = ANY(:ids::text[]) OR start_key = ANY(:keys::text[]);

-- name: execution
SELECT
  x, id, version, updated_at, started_at, status, path, playbook, namespace, parent, root, labels, priority, fair_key,
  next_wake, ended_at, expires_at, forked_from, served
FROM execution WHERE id = :execution_id;

-- name: executions
SELECT
  x, id, version, updated_at, started_at, status, path, playbook, namespace, parent, root, labels, priority, fair_key,
  next_wake, ended_at, expires_at, forked_from, served
FROM execution
WHERE x < :before
  AND id >= :execution_id AND id < :execution_id || chr(1114111) -- if execution_id
  AND status = ANY(:status::text[]) -- if status
  AND path >= :path AND path < :path || chr(1114111) -- if path
  AND parent <> '' AND parent = :parent -- if parent
  AND parent = '' -- if roots
  AND NOT served -- if unserved
  AND started_at >= :since -- if since
  AND started_at < :until -- if until
  AND playbook = :playbook -- if playbook
  AND ended_at > 0 AND (SELECT replace(convert_from(body, 'UTF8'), '\u0000', '\ufffd')::json #>> '{error,kind}' FROM event WHERE execution_id = execution.id AND seq = execution.version) = :error_kind -- if error_kind
  AND (strpos(lower(id || ' ' || path || ' ' || labels), :text) > 0 OR (status = 'failed' AND strpos((SELECT lower(replace(convert_from(body, 'UTF8'), '\u0000', '\ufffd')::json #>> '{error,message}') FROM event WHERE execution_id = execution.id AND seq = execution.version), :text) > 0)) -- if text
  AND NOT EXISTS (SELECT FROM unnest(:labels::text[]) AS wanted WHERE strpos(',' || substr(labels, 2), wanted) = 0) -- if labels
ORDER BY x DESC LIMIT :limit;

-- name: ended
SELECT id FROM execution
WHERE ended_at > 0 AND ended_at < :before
  AND NOT EXISTS (
    SELECT FROM execution AS above WHERE above.id IN (execution.parent, execution.root) AND above.ended_at = 0
  )
ORDER BY ended_at, x LIMIT :limit;

-- name: timers
SELECT due, execution_id, key FROM timer WHERE due <= :until ORDER BY due, execution_id, key LIMIT :limit;

-- name: outbox
SELECT id, execution_id, key, body FROM outbox WHERE id > :after ORDER BY id LIMIT :limit;

-- name: ready
SELECT id, execution_id, key, pool, kinds, priority FROM ready WHERE id > :after ORDER BY id LIMIT :limit;

-- name: leases
SELECT execution_id, key, session, fence FROM lease ORDER BY execution_id, key;

-- name: leases_of
SELECT execution_id, key, session, fence FROM lease WHERE session = ANY(:sessions::text[]);

-- name: versions
SELECT id, version FROM execution WHERE id = ANY(:execution_ids::text[]);

-- name: keyed_rows
-- All rows of an execution that have keys, in one answer.
SELECT 'served' AS place, '' AS key, served::integer::bigint AS number, NULL::bytea AS body, '' AS first, '' AS second, 0::bigint AS id
FROM execution WHERE id = :execution_id
UNION ALL SELECT 'timers', key, due, NULL, '', '', 0 FROM timer WHERE execution_id = :execution_id
UNION ALL SELECT 'outbox', key, 0, body, '', '', id FROM outbox WHERE execution_id = :execution_id
UNION ALL SELECT 'ready', key, priority, NULL, pool, kinds, id FROM ready WHERE execution_id = :execution_id
UNION ALL SELECT 'leases', key, fence, NULL, session, '', 0 FROM lease WHERE execution_id = :execution_id
ORDER BY id, key;

-- name: inbox
SELECT id, execution_id, body FROM inbox
WHERE execution_id = ANY(:execution_ids::text[]) -- if execution_ids
ORDER BY id;

-- name: snapshot
SELECT seq, format, body, checksum FROM snapshot
WHERE execution_id = :execution_id AND format = :format AND seq <= :at
ORDER BY seq DESC;

-- name: playbook
SELECT document, checksum FROM playbook WHERE hash = :hash;

-- name: playbooks
SELECT hash FROM playbook ORDER BY hash;

-- name: start_key
SELECT start_key FROM execution WHERE id = :execution_id;

-- name: credentials
SELECT name, kind, key_id, wrapped_key, body, created_at, updated_at FROM credential ORDER BY name;

-- name: credential
SELECT name, kind, key_id, wrapped_key, body, created_at, updated_at FROM credential WHERE name = :name;

-- name: blob
SELECT substring(data FROM :start + 1 FOR :length) FROM blob WHERE name = :name;

-- name: blobs
SELECT name FROM blob WHERE name >= :prefix AND name < :prefix || chr(1114111) ORDER BY name;

-- name: blob_sizes
SELECT name, octet_length(data) AS size FROM blob
WHERE name >= :prefix AND name < :prefix || chr(1114111) ORDER BY name;

-- name: catalog_entry
SELECT path, version, hash, label, dialect, source, canonical, created_at, created_by FROM catalog
WHERE path = :path AND (version = :version OR :version = 0)
ORDER BY created_at > :at, CASE WHEN created_at > :at THEN version ELSE -version END LIMIT 1;

-- name: catalog_entries
SELECT DISTINCT ON (path) path, version, hash, label, dialect, source, canonical, created_at, created_by FROM catalog
WHERE path > :after AND path >= :prefix AND path < :prefix || chr(1114111)
ORDER BY path, version DESC LIMIT :limit;

-- name: catalog_versions
SELECT path, version, hash, label, dialect, source, canonical, created_at, created_by FROM catalog
WHERE path = :path ORDER BY version DESC;

-- name: catalog_numbers
SELECT path, version FROM catalog_number ORDER BY path;

-- name: running_versions
SELECT id FROM execution WHERE path = :path AND ended_at = 0
AND playbook IN (SELECT hash FROM catalog WHERE path = :path AND (version = :version OR :version = 0))
ORDER BY x DESC LIMIT 100;

-- name: api_token
SELECT name, hash, role, created_at, created_by, expires_at, revoked_at FROM api_token WHERE hash = :hash;

-- name: api_tokens
SELECT DISTINCT ON (name) name, hash, role, created_at, created_by, expires_at, revoked_at FROM api_token
ORDER BY name, created_at DESC;

-- name: api_token_history
SELECT name, hash, role, created_at, created_by, expires_at, revoked_at FROM api_token ORDER BY created_at, hash;

-- name: audit
SELECT at, by, role, action, target, address, status, id FROM audit
WHERE id < :before OR :before = 0 ORDER BY id DESC LIMIT :limit;
