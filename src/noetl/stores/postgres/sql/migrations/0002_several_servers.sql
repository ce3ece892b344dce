ALTER TABLE inbox ADD COLUMN taken_until timestamptz NOT NULL DEFAULT '-infinity';
ALTER TABLE timer ADD COLUMN taken_until timestamptz NOT NULL DEFAULT '-infinity';
ALTER TABLE outbox ADD COLUMN taken_until timestamptz NOT NULL DEFAULT '-infinity';
ALTER TABLE ready ADD COLUMN taken_until timestamptz NOT NULL DEFAULT '-infinity';
CREATE INDEX ready_pool ON ready (pool, priority DESC, id);
CREATE INDEX lease_session ON lease (session);
DROP TABLE server;

CREATE UNLOGGED TABLE session (
  id text COLLATE "C" PRIMARY KEY,
  server text COLLATE "C" NOT NULL,
  connection integer NOT NULL,
  token text COLLATE "C" NOT NULL,
  worker text COLLATE "C" NOT NULL,
  ttl interval NOT NULL,
  expires_at timestamptz NOT NULL,
  taken_until timestamptz NOT NULL DEFAULT '-infinity'
);

CREATE UNLOGGED TABLE turn (
  name text COLLATE "C" PRIMARY KEY,
  server text COLLATE "C" NOT NULL,
  expires_at timestamptz NOT NULL
);
