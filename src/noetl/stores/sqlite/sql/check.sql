-- Queries for what cannot be, and for what is needed to rebuild it. Each gives an execution's id and a sentence.

-- name: gaps
SELECT id, 'has ' || count(seq) || ' events from ' || coalesce(min(seq), 0) || ' up to ' || coalesce(max(seq), 0)
FROM execution LEFT JOIN event USING (x)
GROUP BY x
HAVING count(seq) = 0 OR min(seq) <> 1 OR max(seq) <> count(seq);

-- name: wrong_time
SELECT id, 'started at another time than its first event'
FROM execution
WHERE forked_from = ''
  AND started_at <> coalesce((SELECT ts FROM event WHERE event.x = execution.x ORDER BY seq LIMIT 1), started_at);

-- name: open_end
SELECT id, 'the last event does not end an append'
FROM execution
WHERE NOT coalesce((SELECT enc & 1 FROM event WHERE event.x = execution.x ORDER BY seq DESC LIMIT 1), 1);

-- name: unknown_encoding
SELECT coalesce(id, ''), 'event ' || seq || ' has the unknown encoding ' || enc
FROM event LEFT JOIN execution USING (x)
WHERE enc NOT IN (0, 1);

-- name: early_snapshot
SELECT id, 'a snapshot at ' || seq || ' is above version ' || version
FROM snapshot JOIN (
  SELECT x, id, (SELECT coalesce(max(seq), 0) FROM event WHERE event.x = execution.x) AS version FROM execution
) USING (x)
WHERE seq > version;

-- name: missing_playbook
SELECT id, 'the document ' || playbook || ' is missing'
FROM execution
WHERE playbook <> '' AND playbook NOT IN (SELECT hash FROM playbook);

-- name: orphans
SELECT '', count(*) || ' rows of ' || place || ' belong to no execution'
FROM (
  SELECT 'event' AS place, x FROM event
  UNION ALL SELECT 'start', x FROM start
  UNION ALL SELECT 'inbox', x FROM inbox
  UNION ALL SELECT 'snapshot', x FROM snapshot
  UNION ALL SELECT 'timer', x FROM timer
  UNION ALL SELECT 'outbox', x FROM outbox
  UNION ALL SELECT 'ready', x FROM ready
  UNION ALL SELECT 'lease', x FROM lease
)
WHERE x <> 0 AND x NOT IN (SELECT x FROM execution)
GROUP BY place;
