-- The parts of the one statement that is a commit. They are put together as they are needed, in this order; a line that
-- ends with `-- if x` stands only when there is an x. `asked` has one row for each execution: what is appended to it.
--
-- Rows of `execution` are locked in the order of ids, so that two commits never wait for each other. What is written
-- besides is only for those that won: `IS TRUE` makes the planner look into a hash table for each row, while a join
-- that it plans for ten rows would take a loop in a loop for ten thousand.

-- name: asked
WITH asked AS MATERIALIZED (
  SELECT * FROM unnest(
    :ids::text[], :expected::integer[], :versions::integer[], :updated_at::bigint[]
    , :start_keys::text[], :served::boolean[] -- if begins
    , :started_at::bigint[], :status::text[], :path::text[], :playbook::text[], :namespace::text[] -- if facts
    , :parent::text[], :root::text[], :labels::text[], :priority::bigint[], :fair_key::text[] -- if facts
    , :next_wake::bigint[], :ended_at::bigint[], :expires_at::bigint[], :forked_from::text[] -- if facts
  ) WITH ORDINALITY AS a(
    id, expected, version, updated_at
    , start_key, served -- if begins
    , started_at, status, path, playbook, namespace -- if facts
    , parent, root, labels, priority, fair_key -- if facts
    , next_wake, ended_at, expires_at, forked_from -- if facts
    , place
  )
)

-- name: made
, numbered AS MATERIALIZED (
  SELECT id, nextval('execution_x_seq') AS x FROM asked WHERE expected = 0 ORDER BY place
), made AS (
  INSERT INTO execution (
    x, id, version, updated_at, started_at, status, path, playbook, namespace, parent, root, labels,
    priority, fair_key, next_wake, ended_at, expires_at, forked_from, served, start_key
  )
  SELECT
    x, id, version, updated_at, started_at, coalesce(status, ''), coalesce(path, ''), coalesce(playbook, ''),
    coalesce(namespace, ''), coalesce(parent, ''), coalesce(root, ''), coalesce(labels, '{}'),
    coalesce(priority, 0), coalesce(fair_key, ''), coalesce(next_wake, 0), coalesce(ended_at, 0),
    coalesce(expires_at, 0), coalesce(forked_from, ''), served, nullif(start_key, '')
  FROM asked JOIN numbered USING (id)
  ORDER BY id
  ON CONFLICT DO NOTHING
  RETURNING id
)

-- name: moved
, locked AS MATERIALIZED (
  SELECT asked.*, execution.version AS current
  FROM asked JOIN execution USING (id)
  WHERE asked.expected > 0
  ORDER BY execution.id
  FOR UPDATE OF execution
), moved AS (
  UPDATE execution SET
    started_at = coalesce(locked.started_at, execution.started_at), -- if facts
    status = coalesce(locked.status, execution.status), -- if facts
    path = coalesce(locked.path, execution.path), -- if facts
    playbook = coalesce(locked.playbook, execution.playbook), -- if facts
    namespace = coalesce(locked.namespace, execution.namespace), -- if facts
    parent = coalesce(locked.parent, execution.parent), -- if facts
    root = coalesce(locked.root, execution.root), -- if facts
    labels = coalesce(locked.labels, execution.labels), -- if facts
    priority = coalesce(locked.priority, execution.priority), -- if facts
    fair_key = coalesce(locked.fair_key, execution.fair_key), -- if facts
    next_wake = coalesce(locked.next_wake, execution.next_wake), -- if facts
    ended_at = coalesce(locked.ended_at, execution.ended_at), -- if facts
    expires_at = coalesce(locked.expires_at, execution.expires_at), -- if facts
    forked_from = coalesce(locked.forked_from, execution.forked_from), -- if facts
    version = locked.version,
    updated_at = locked.updated_at
  FROM locked
  WHERE execution.id = locked.id AND locked.current = locked.expected
  RETURNING execution.id
)

-- name: won
, won AS MATERIALIZED (
  SELECT id FROM made -- if begins
  UNION ALL -- if both
  SELECT id FROM moved -- if moves
), put_events AS (
  INSERT INTO event (execution_id, seq, ts, kind, enc, v, checksum, body, pos, xact)
  SELECT id, seq, ts, kind, enc, v, checksum, body, place, (SELECT pg_current_xact_id()::text::bigint + :shift::bigint)
  FROM unnest(
    :event_ids::text[], :event_seqs::integer[], :event_ts::bigint[], :event_kinds::smallint[], :event_encs::smallint[],
    :event_versions::smallint[], :event_checksums::bigint[], :event_bodies::bytea[]
  ) WITH ORDINALITY AS new(id, seq, ts, kind, enc, v, checksum, body, place)
  WHERE (id IN (SELECT id FROM won)) IS TRUE
)

-- name: set_timers
, set_timers AS (
  INSERT INTO timer (execution_id, key, due)
  SELECT id, key, due FROM unnest(:timer_ids::text[], :timer_keys::text[], :timer_due::bigint[]) AS new(id, key, due)
  WHERE (id IN (SELECT id FROM won)) IS TRUE
  ON CONFLICT (execution_id, key) DO UPDATE SET due = excluded.due, taken_until = DEFAULT
)

-- name: clear_timers
, clear_timers AS (
  DELETE FROM timer USING unnest(:no_timer_ids::text[], :no_timer_keys::text[]) AS new(id, name)
  WHERE execution_id = id AND key = name AND (id IN (SELECT id FROM won)) IS TRUE
)

-- name: set_outbox
, set_outbox AS (
  INSERT INTO outbox (execution_id, key, body)
  SELECT id, key, body
  FROM unnest(:outbox_ids::text[], :outbox_keys::text[], :outbox_bodies::bytea[]) WITH ORDINALITY AS new(id, key, body, place)
  WHERE (id IN (SELECT id FROM won)) IS TRUE
  ORDER BY place
  ON CONFLICT (execution_id, key) DO UPDATE SET id = DEFAULT, body = excluded.body, taken_until = DEFAULT
)

-- name: clear_outbox
, clear_outbox AS (
  DELETE FROM outbox USING unnest(:no_outbox_ids::text[], :no_outbox_keys::text[]) AS new(owner, name)
  WHERE execution_id = owner AND key = name AND (owner IN (SELECT id FROM won)) IS TRUE
)

-- name: set_ready
, set_ready AS (
  INSERT INTO ready (execution_id, key, pool, kinds, priority)
  SELECT id, key, pool, kinds, priority
  FROM unnest(:ready_ids::text[], :ready_keys::text[], :ready_pools::text[], :ready_kinds::text[], :ready_priorities::bigint[])
    WITH ORDINALITY AS new(id, key, pool, kinds, priority, place)
  WHERE (id IN (SELECT id FROM won)) IS TRUE
  ORDER BY place
  ON CONFLICT (execution_id, key) DO UPDATE SET
    id = DEFAULT, pool = excluded.pool, kinds = excluded.kinds, priority = excluded.priority, taken_until = DEFAULT
)

-- name: clear_ready
, clear_ready AS (
  DELETE FROM ready USING unnest(:no_ready_ids::text[], :no_ready_keys::text[]) AS new(owner, name)
  WHERE execution_id = owner AND key = name AND (owner IN (SELECT id FROM won)) IS TRUE
)

-- name: set_leases
, set_leases AS (
  INSERT INTO lease (execution_id, key, session, fence)
  SELECT id, key, session, fence
  FROM unnest(:lease_ids::text[], :lease_keys::text[], :lease_sessions::text[], :lease_fences::bigint[]) AS new(id, key, session, fence)
  WHERE (id IN (SELECT id FROM won)) IS TRUE
  ON CONFLICT (execution_id, key) DO UPDATE SET session = excluded.session, fence = excluded.fence
)

-- name: clear_leases
, clear_leases AS (
  DELETE FROM lease USING unnest(:no_lease_ids::text[], :no_lease_keys::text[]) AS new(id, name)
  WHERE execution_id = id AND key = name AND (id IN (SELECT id FROM won)) IS TRUE
)

-- name: answered
, answered AS (
  DELETE FROM inbox USING unnest(:answer_ids::text[], :answers::bigint[]) AS new(owner, message)
  WHERE inbox.id = message AND (owner IN (SELECT id FROM won)) IS TRUE
)

-- name: delivered
-- A message that is set or cleared here, too, is touched once, and what is set stays: PostgreSQL leaves alone what the
-- same statement has changed before.
, delivered AS (
  DELETE FROM outbox USING unnest(:delivered_ids::text[], :delivered::bigint[]) AS new(owner, message)
  WHERE outbox.id = message AND (owner IN (SELECT id FROM won)) IS TRUE
)

-- name: audited
, audited AS (
  INSERT INTO audit (at, by, role, action, target, address, status)
  SELECT at, by, role, action, target, address, status
  FROM unnest(
    :audit_ids::text[], :audit_at::bigint[], :audit_by::text[], :audit_roles::text[], :audit_actions::text[],
    :audit_targets::text[], :audit_addresses::text[], :audit_statuses::integer[]
  ) WITH ORDINALITY AS new(id, at, by, role, action, target, address, status, place)
  WHERE (id IN (SELECT id FROM won)) IS TRUE
  ORDER BY place
)

-- name: winners
SELECT id FROM won
