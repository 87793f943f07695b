import type { Session } from "../session.ts";
import { QueueRefused, refusing } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";

export type QueueTaskKind = "enqueue" | "claim" | "stats" | "purge" | "purge_dead" | "redrive";

/** Work that was asked for over the API; kept for 24 hours. */
export interface QueueTask {
  readonly id: string;
  readonly queue: string;
  readonly kind: QueueTaskKind;
  readonly bodyHash: string;
  readonly state: "pending" | "running" | "completed" | "failed";
  /** JSON text of what was asked, of the result so far, undefined without one. */
  readonly input: string | undefined;
  readonly result: string | undefined;
  readonly error: string | undefined;
  readonly createdAt: Date;
  /** When it came as far as it is. */
  readonly updatedAt: Date;
}

/** The task of this id, of any queue, for 24 hours. */
export function readTask(session: Session, { taskId }: { readonly taskId: string }): Promise<QueueTask | undefined> {
  return refusing(async () => {
    const [row] = await session.rows<Row>(
      `SELECT ${columns} FROM ${schema}.tasks WHERE id = $1 AND created_at > clock_timestamp() - interval '24 hours'`,
      [taskId],
    );
    return row && taskOf(row);
  });
}

/** Keeps a task to be worked on, or finds it as it is. Throws QueueRefused for another body or no such queue. */
export function putTask(
  session: Session,
  asked: Pick<QueueTask, "id" | "queue" | "kind" | "bodyHash"> & { readonly input?: string },
): Promise<QueueTask> {
  return refusing(async () => {
    await session.rows(
      `INSERT INTO ${schema}.tasks (id, queue_name, kind, body_hash, state, input)
         SELECT $1, q.name, $3, $4, 'pending', $5::jsonb FROM ${schema}.queues q WHERE q.name = $2 AND q.deleted_at IS NULL
       ON CONFLICT (id) DO NOTHING`,
      [asked.id, asked.queue, asked.kind, asked.bodyHash, asked.input ?? null],
    );
    const task = await readTask(session, { taskId: asked.id });
    if (task === undefined) throw new QueueRefused("queue_not_active", `queue ${asked.queue} is not active`);
    if (task.kind !== asked.kind || task.bodyHash !== asked.bodyHash || task.queue !== asked.queue)
      throw new QueueRefused("task_conflict", "the task was asked for with another body");
    return task;
  });
}

/** Tasks that are not over, oldest first: an agent that starts resumes them. */
export function openTasks(session: Session): Promise<QueueTask[]> {
  return refusing(async () => {
    const rows = await session.rows<Row>(
      `SELECT ${columns} FROM ${schema}.tasks WHERE state IN ('pending', 'running') ORDER BY created_at LIMIT 1000`,
    );
    return rows.map(taskOf);
  });
}

/** Notes how far a task has come, unless it is over. */
export async function noteTask(
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
