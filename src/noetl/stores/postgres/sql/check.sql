-- Queries for what cannot be. Each gives an execution's id and a sentence.

-- name: gaps
SELECT id, 'has ' || count(seq) || ' events from ' || coalesce(min(seq), 0) || ' up to ' || coalesce(max(seq), 0)
FROM execution LEFT JOIN event ON execution_id = id
GROUP BY id
HAVING count(seq) = 0 OR min(seq) <> 1 OR max(seq) <> count(seq);

-- name: wrong_version
SELECT id, 'is at version ' || version || ', its last event is ' || seq
FROM (SELECT execution.id, version, (SELECT max(seq) FROM event WHERE execution_id = execution.id) AS seq FROM execution) AS newest
WHERE seq <> version;

-- name: wrong_time
SELECT id, 'started at another time than its first event'
FROM execution JOIN event ON execution_id = id AND seq = 1
WHERE forked_from = '' AND started_at <> ts;

-- name: wrong_change
SELECT id, 'was last changed at another time than its last event'
FROM execution JOIN event ON execution_id = id AND seq = version
WHERE updated_at <> ts;

-- name: open_end
SELECT id, 'the last event does not end an append'
FROM execution JOIN event ON execution_id = id AND seq = version
WHERE enc & 1 = 0;

-- name: unknown_encoding
SELECT execution_id, 'event ' || seq || ' has the unknown encoding ' || enc FROM event WHERE enc NOT IN (0, 1);

-- name: early_snapshot
SELECT id, 'a snapshot at ' || seq || ' is above version ' || version
FROM snapshot JOIN execution ON execution_id = id
WHERE seq > version;

-- name: missing_playbook
SELECT id, 'the document ' || playbook || ' is missing'
FROM execution
WHERE playbook <> '' AND playbook NOT IN (SELECT hash FROM playbook);

-- name: orphans
SELECT '', count(*) || ' rows of ' || place || ' belong to no execution'
FROM (
  SELECT 'event' AS place, execution_id FROM event
  UNION ALL SELECT 'inbox', execution_id FROM inbox
  UNION ALL SELECT 'snapshot', execution_id FROM snapshot
  UNION ALL SELECT 'timer', execution_id FROM timer
  UNION ALL SELECT 'outbox', execution_id FROM outbox
  UNION ALL SELECT 'ready', execution_id FROM ready
  UNION ALL SELECT 'lease', execution_id FROM lease
) AS rows_of
WHERE NOT EXISTS (SELECT FROM execution WHERE id = execution_id)
GROUP BY place;

-- name: ids
SELECT id FROM execution ORDER BY x;

-- name: events_of
SELECT seq, ts, kind, v, body, enc, checksum FROM event WHERE execution_id = :execution_id ORDER BY seq;

-- name: snapshots_of
SELECT seq, format, body, checksum FROM snapshot WHERE execution_id = :execution_id;

-- name: documents
SELECT hash, document, checksum FROM playbook;
