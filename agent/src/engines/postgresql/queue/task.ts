import type { Session } from "../session.ts";
import { QueueRefused, mapRefusals } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";

export type QueueTaskKind = "enqueue" | "claim" | "stats" | "purge" | "purge_dead" | "redrive";

/** A request over the API with its state; stored for 24 hours. */
export interface QueueTask {
  readonly id: string;
  readonly queue: string;
  readonly kind: QueueTaskKind;
  readonly bodyHash: string;
  readonly state: "pending" | "running" | "completed" | "failed";
  /** Request as JSON; undefined if there is none. */
  readonly input: string | undefined;
  /** Result as JSON, also a partial one; undefined if there is none. */
  readonly result: string | undefined;
  readonly error: string | undefined;
  readonly createdAt: Date;
  /** Time of the last progress. */
  readonly updatedAt: Date;
}

/** The task with this id, of any queue; undefined after 24 hours. */
export function readTask(session: Session, { taskId }: { readonly taskId: string }): Promise<QueueTask | undefined> {
  return mapRefusals(async () => {
    const [row] = await session.rows<Row>(
      `SELECT ${columns} FROM ${schema}.tasks WHERE id = $1 AND created_at > clock_timestamp() - interval '24 hours'`,
      [taskId],
    );
    return row && taskOf(row);
  });
}

/**
 * Stores a task to be run, or returns the existing one. Throws QueueRefused for another body, or if there is no such
 * queue.
 */
export function putTask(
  session: Session,
  request: Pick<QueueTask, "id" | "queue" | "kind" | "bodyHash"> & { readonly input?: string },
): Promise<QueueTask> {
  return mapRefusals(async () => {
    await session.rows(
      `INSERT INTO ${schema}.tasks (id, queue_name, kind, body_hash, state, input)
         SELECT $1, q.name, $3, $4, 'pending', $5::jsonb FROM ${schema}.queues q WHERE q.name = $2 AND q.deleted_at IS NULL
       ON CONFLICT (id) DO NOTHING`,
      [request.id, request.queue, request.kind, request.bodyHash, request.input ?? null],
    );
    const task = await readTask(session, { taskId: request.id });
    if (task === undefined) throw new QueueRefused("queue_not_active", `queue ${request.queue} is not active`);
    if (task.kind !== request.kind || task.bodyHash !== request.bodyHash || task.queue !== request.queue)
      throw new QueueRefused("task_conflict", "A task with this id exists with another body.");
    return task;
  });
}

/** Tasks that have not ended, oldest first; a starting agent resumes them. */
export function openTasks(session: Session): Promise<QueueTask[]> {
  return mapRefusals(async () => {
    const rows = await session.rows<Row>(
      `SELECT ${columns} FROM ${schema}.tasks WHERE state IN ('pending', 'running') ORDER BY created_at LIMIT 1000`,
    );
    return rows.map(taskOf);
  });
}

/** Stores the progress of a task, unless it has ended. */
export async function updateTask(
  session: Session,
  taskId: string,
  { state, result, error }: { readonly state: QueueTask["state"]; readonly result?: string; readonly error?: string },
): Promise<void> {
  await session.rows(
    `UPDATE ${schema}.tasks SET state = $2, result = coalesce($3::jsonb, result), error = $4, updated_at = clock_timestamp()
     WHERE id = $1 AND state IN ('pending', 'running')`,
    [taskId, state, result ?? null, error ?? null],
  );
}

const columns = "id, queue_name, kind, body_hash, state, input::text, result::text, error, created_at, updated_at";

interface Row {
  readonly id: string;
  readonly queue_name: string;
  readonly kind: QueueTaskKind;
  readonly body_hash: string;
  readonly state: QueueTask["state"];
  readonly input: string | null;
  readonly result: string | null;
  readonly error: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

function taskOf(row: Row): QueueTask {
  return {
    id: row.id,
    queue: row.queue_name,
    kind: row.kind,
    bodyHash: row.body_hash,
    state: row.state,
    input: row.input ?? undefined,
    result: row.result ?? undefined,
    error: row.error ?? undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
