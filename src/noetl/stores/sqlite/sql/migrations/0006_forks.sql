-- Forks have a start of their own and name their origin: 30 is the kind of the event that makes one.

ALTER TABLE execution ADD COLUMN forked_from TEXT NOT NULL DEFAULT '';

UPDATE execution SET started_at = fork.ts, parent = '', forked_from = fork.source
FROM (
  SELECT x, max(seq), ts, json_extract(CAST(body AS TEXT), '$.source') AS source
  FROM event WHERE kind = 30 GROUP BY x
) AS fork
WHERE execution.x = fork.x;
