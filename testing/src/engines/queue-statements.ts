/** Statements that users write themselves, as in docs/how-to/queues.md. */
export const statements = {
  enqueue: `INSERT INTO mdb_queue.messages (queue_name, payload, max_attempts, visible_at)
    SELECT name, $2::jsonb, max_attempts, now() + make_interval(secs => $3) FROM mdb_queue.queues
    WHERE name = $1 AND deleted_at IS NULL RETURNING id`,
  claim: `WITH taken AS MATERIALIZED (
      SELECT id FROM mdb_queue.messages
      WHERE queue_name = $1 AND visible_at <= now() AND attempt_count < max_attempts
      ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED
    ), claimed AS (
      UPDATE mdb_queue.messages m
      SET visible_at = now() + make_interval(secs => $4), attempt_count = attempt_count + 1, claimed_by = $2
      FROM taken WHERE m.id = taken.id RETURNING m.*
    ) SELECT * FROM claimed ORDER BY id`,
  ack: "DELETE FROM mdb_queue.messages WHERE id = ANY ($3) AND queue_name = $1 AND claimed_by = $2 RETURNING id",
  nack: `UPDATE mdb_queue.messages SET visible_at = now() + make_interval(secs => $4), last_error = $5
    WHERE id = ANY ($3) AND queue_name = $1 AND claimed_by = $2 RETURNING id`,
  extend: `UPDATE mdb_queue.messages SET visible_at = now() + make_interval(secs => $4)
    WHERE id = ANY ($3) AND queue_name = $1 AND claimed_by = $2 RETURNING id`,
};

/** Functions with equal results. `nack` removes the message's claim; the statement leaves the last claim on it. */
export const functions: typeof statements = {
  enqueue: "SELECT mdb_queue.enqueue($1, $2::jsonb, $3) AS id",
  claim: "SELECT * FROM mdb_queue.claim($1, $2, $3, $4)",
  ack: "SELECT id FROM mdb_queue.ack($1, $2, $3) WHERE done",
  nack: "SELECT id FROM mdb_queue.nack($1, $2, $3, $4, $5) WHERE done",
  extend: "SELECT id FROM mdb_queue.extend($1, $2, $3, $4) WHERE done",
};
