-- Queries that compare derived rows with the events they follow from, and write them anew.

-- name: ids
SELECT id FROM execution ORDER BY x;

-- name: events_of
SELECT seq, ts, kind, v, body, enc, checksum FROM event WHERE x = ? ORDER BY seq;

-- name: snapshots_of
SELECT seq, format, body, checksum FROM snapshot WHERE x = ?;

-- name: forget_snapshot
DELETE FROM snapshot WHERE x = ? AND seq = ?;

-- name: documents
SELECT hash, document, checksum FROM playbook;

-- name: rewrite
UPDATE execution SET
  started_at = ?,
  status = ?, path = ?, playbook = ?, namespace = ?, parent = ?, root = ?, labels = ?, priority = ?,
  fair_key = ?, next_wake = ?, ended_at = ?, expires_at = ?, forked_from = ?
WHERE x = ?;
