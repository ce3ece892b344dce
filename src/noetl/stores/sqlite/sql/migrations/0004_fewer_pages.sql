-- Commits touch fewer pages: see schema.sql.

ALTER TABLE execution DROP COLUMN version;
ALTER TABLE execution DROP COLUMN updated_at;

ALTER TABLE event RENAME TO former_event;

CREATE TABLE event (
  pos INTEGER PRIMARY KEY,
  x INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  enc INTEGER NOT NULL,
  v INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (x, seq)
) STRICT;

INSERT INTO event SELECT * FROM former_event;
INSERT OR IGNORE INTO event SELECT seq, 0, seq, 0, 0, 1, 0, x'' FROM sqlite_sequence WHERE name = 'former_event';
DROP TABLE former_event;
