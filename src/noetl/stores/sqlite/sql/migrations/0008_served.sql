-- What a server needs to begin without folding every execution that lives.

ALTER TABLE execution ADD COLUMN served INTEGER NOT NULL DEFAULT 0;

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
