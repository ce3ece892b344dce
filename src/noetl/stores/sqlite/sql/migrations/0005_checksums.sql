-- What was written before stays without a checksum. Snapshots only save folding: none is used that cannot be checked.

ALTER TABLE event ADD COLUMN checksum INTEGER;
ALTER TABLE playbook ADD COLUMN checksum INTEGER;

DROP TABLE snapshot;

CREATE TABLE snapshot (
  x INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  format INTEGER NOT NULL,
  body BLOB NOT NULL,
  checksum INTEGER NOT NULL,
  UNIQUE (x, seq)
) STRICT;
