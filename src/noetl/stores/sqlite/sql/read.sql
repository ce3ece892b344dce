-- Queries that only read. A line that ends with `-- if x` stands only when x is given.

-- name: rows
-- From the end of the append before, to the end of the append that the last one wanted belongs to: only whole appends
-- can be checked.
SELECT seq, ts, kind, v, body, enc, checksum
FROM event
WHERE x = (SELECT x FROM execution WHERE id = :execution_id)
  AND seq >= coalesce(
    (SELECT seq FROM event
     WHERE x = (SELECT x FROM execution WHERE id = :execution_id) AND seq <= :after AND enc & 1
     ORDER BY seq DESC LIMIT 1), 0)
  AND seq <= coalesce(
    (SELECT seq FROM event
     WHERE x = (SELECT x FROM execution WHERE id = :execution_id) AND seq >= :until AND enc & 1
     ORDER BY seq LIMIT 1), :newest)
ORDER BY seq;

-- name: unchecked_appends
SELECT count(*) FROM event WHERE x <> 0 AND enc & 1 AND checksum IS NULL;

-- name: feed
SELECT pos, id, seq, ts, kind, v, body, enc
FROM event CROSS JOIN execution USING (x)
WHERE pos > ?
ORDER BY pos LIMIT ?;

-- name: feed_end
SELECT coalesce(max(pos), 0) FROM event;

-- name: execution
SELECT
  x, id,
  (SELECT max(seq) FROM event WHERE event.x = execution.x),
  (SELECT ts FROM event WHERE event.x = execution.x ORDER BY seq DESC LIMIT 1),
  started_at, status, path, playbook, namespace, parent, root, labels, priority, fair_key,
  next_wake, ended_at, expires_at, forked_from, served
FROM execution WHERE id = ?;

-- name: executions
SELECT
  x, id,
  (SELECT max(seq) FROM event WHERE event.x = execution.x),
  (SELECT ts FROM event WHERE event.x = execution.x ORDER BY seq DESC LIMIT 1),
  started_at, status, path, playbook, namespace, parent, root, labels, priority, fair_key,
  next_wake, ended_at, expires_at, forked_from, served
FROM execution
WHERE x < :before
  AND id >= :execution_id AND id < :execution_id || char(0x10ffff) -- if execution_id
  AND status IN (SELECT value FROM json_each(:status)) -- if status
  AND path >= :path AND path < :path || char(0x10ffff) -- if path
  AND parent <> '' AND parent = :parent -- if parent
  AND parent = '' -- if roots
  AND served = 0 -- if unserved
  AND started_at >= :since -- if since
  AND started_at < :until -- if until
  AND playbook = :playbook -- if playbook
  AND ended_at > 0 AND (SELECT json_extract(CAST(body AS TEXT), '$.error.kind') FROM event WHERE event.x = execution.x ORDER BY seq DESC LIMIT 1) = :error_kind -- if error_kind
  AND (instr(lower(id || ' ' || path || ' ' || labels), :text) OR (status = 'failed' AND instr((SELECT lower(json_extract(CAST(body AS TEXT), '$.error.message')) FROM event WHERE event.x = execution.x ORDER BY seq DESC LIMIT 1), :text))) -- if text
  AND NOT EXISTS (SELECT key, value FROM json_each(:labels) EXCEPT SELECT key, value FROM json_each(labels)) -- if labels
ORDER BY x DESC LIMIT :limit;

-- name: ended
SELECT id FROM execution
WHERE ended_at > 0 AND ended_at < ?
  AND NOT EXISTS (
    SELECT 1 FROM execution AS above WHERE above.id IN (execution.parent, execution.root) AND above.ended_at = 0
  )
ORDER BY ended_at, x LIMIT ?;

-- name: timers
SELECT due, id, key FROM timer CROSS JOIN execution USING (x) WHERE due <= ? ORDER BY due, x, key LIMIT ?;

-- name: outbox
SELECT outbox.id, execution.id, key, body
FROM outbox CROSS JOIN execution USING (x)
WHERE outbox.id > ?
ORDER BY outbox.id LIMIT ?;

-- name: ready
SELECT ready.id, execution.id, key, pool, kinds, ready.priority
FROM ready CROSS JOIN execution USING (x)
WHERE ready.id > ?
ORDER BY ready.id LIMIT ?;

-- name: leases
SELECT execution.id, key, session, fence FROM lease CROSS JOIN execution USING (x) ORDER BY x, key;

-- name: timers_of
SELECT key, due FROM timer WHERE x = ?;

-- name: messages_of
SELECT key, body FROM outbox WHERE x = ? ORDER BY id;

-- name: ready_of
SELECT key, pool, kinds, priority FROM ready WHERE x = ? ORDER BY id;

-- name: leases_of
SELECT key, session, fence FROM lease WHERE x = ?;

-- name: served
SELECT served FROM execution WHERE x = ?;

-- name: has_inbox
SELECT EXISTS (SELECT 1 FROM inbox);

-- name: inbox
SELECT inbox.id, execution.id, body
FROM execution JOIN inbox USING (x)
WHERE execution.id IN (SELECT value FROM json_each(?))
ORDER BY inbox.id;

-- name: whole_inbox
SELECT inbox.id, execution.id, body FROM inbox CROSS JOIN execution USING (x) ORDER BY inbox.id;

-- name: snapshot
SELECT seq, format, body, checksum
FROM snapshot
WHERE x = (SELECT x FROM execution WHERE id = ?) AND format = ? AND seq <= ?
ORDER BY seq DESC;

-- name: playbook
SELECT document, checksum FROM playbook WHERE hash = ?;

-- name: identity
SELECT x, (SELECT max(seq) FROM event WHERE event.x = execution.x) FROM execution WHERE id = ?;

-- name: credentials
SELECT name, kind, key_id, wrapped_key, body, created_at, updated_at FROM credential ORDER BY name;

-- name: credential
SELECT name, kind, key_id, wrapped_key, body, created_at, updated_at FROM credential WHERE name = ?;

-- name: blob
SELECT rowid FROM blob WHERE name = ?;

-- name: playbooks
SELECT hash FROM playbook ORDER BY hash;

-- name: start_key
SELECT key FROM start JOIN execution USING (x) WHERE id = ?;

-- name: blobs
SELECT name FROM blob WHERE name >= ? AND name < ? ORDER BY name;

-- name: blob_sizes
SELECT name, length(data) FROM blob WHERE name >= ? AND name < ? ORDER BY name;

-- name: newest_catalog_entry
SELECT path, version, hash, label, dialect, source, canonical, created_at, created_by FROM catalog
WHERE path = ? ORDER BY version DESC LIMIT 1;

-- name: catalog_entry
SELECT path, version, hash, label, dialect, source, canonical, created_at, created_by FROM catalog
WHERE path = ? AND version = ?;

-- name: catalog_entry_at
SELECT path, version, hash, label, dialect, source, canonical, created_at, created_by FROM catalog
WHERE path = ?1 ORDER BY created_at > ?2, iif(created_at > ?2, version, -version) LIMIT 1;

-- name: catalog_entries
-- One for each path. Texts are compared as bytes, so a prefix is a range.
SELECT path, max(version), hash, label, dialect, source, canonical, created_at, created_by FROM catalog
WHERE path > ?1 AND path >= ?2 AND path < ?2 || char(0x10FFFF) GROUP BY path ORDER BY path LIMIT ?3;

-- name: catalog_versions
SELECT path, version, hash, label, dialect, source, canonical, created_at, created_by FROM catalog
WHERE path = ? ORDER BY version DESC;

-- name: catalog_numbers
SELECT path, version FROM catalog_number ORDER BY path;

-- name: running_versions
SELECT id FROM execution WHERE path = ?1 AND ended_at = 0
AND playbook IN (SELECT hash FROM catalog WHERE path = ?1 AND (version = ?2 OR ?2 = 0)) ORDER BY x DESC LIMIT 100;

-- name: api_token
SELECT name, hash, role, created_at, created_by, expires_at, revoked_at FROM api_token WHERE hash = ?;

-- name: api_tokens
SELECT name, hash, role, max(created_at), created_by, expires_at, revoked_at FROM api_token GROUP BY name ORDER BY name;

-- name: api_token_history
SELECT name, hash, role, created_at, created_by, expires_at, revoked_at FROM api_token ORDER BY created_at, hash;

-- name: audit
SELECT at, by, role, action, target, address, status, id FROM audit
WHERE id < ?1 OR ?1 = 0 ORDER BY id DESC LIMIT ?2;
