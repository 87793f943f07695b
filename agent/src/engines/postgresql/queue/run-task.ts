import { EngineRefused } from "../../engine-errors.ts";
import { inTransaction, type Session } from "../session.ts";
import { mapRefusals } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";
import { readStats } from "./stats.ts";
import { updateTask, readTask, type QueueTask } from "./task.ts";

const batch = 10_000;

/**
 * Works on a task of kind stats, purge or redrive until it ends, and returns it; a task that has ended is returned as
 * it is. Each batch of 10,000 messages is one transaction that also updates the count, so that an interrupted task
 * resumes.
 */
export async function runTask(session: Session, task: QueueTask, signal: AbortSignal): Promise<QueueTask> {
  try {
    await mapRefusals(() => work(session, task, signal));
  } catch (error) {
    if (!(error instanceof EngineRefused)) throw error;
    await updateTask(session, task.id, { state: "failed", error: error.message });
  }
  return (await readTask(session, { taskId: task.id })) ?? task;
}

async function work(session: Session, { id, queue, kind, input }: QueueTask, signal: AbortSignal): Promise<void> {
  switch (kind) {
    case "stats":
      return updateTask(session, id, {
        state: "completed",
        result: JSON.stringify(await readStats(session, { queue })),
      });
    case "purge":
    case "purge_dead":
      return inBatches(session, id, signal, [
        `SELECT ${schema}.purge($1, $2, ${batch}) AS n`,
        [queue, kind === "purge_dead"],
      ]);
    case "redrive": {
      const { ids } = JSON.parse(input ?? "{}") as { readonly ids?: readonly (string | number)[] };
      return inBatches(session, id, signal, [
        `SELECT ${schema}.redrive($1, $2::bigint[], ${batch}) AS n`,
        [queue, ids === undefined || ids.length === 0 ? null : ids],
      ]);
    }
    case "enqueue":
    case "claim":
      return;
  }
}

/** Updates the count in `result` in the transaction of the batch, so that no message is counted twice. */
async function inBatches(
  session: Session,
  taskId: string,
  signal: AbortSignal,
  [statement, values]: readonly [string, readonly unknown[]],
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const isFinished = await inTransaction(session, async () => {
      const [task] = await session.rows<{ state: string; n: string }>(
        `SELECT state, coalesce(result ->> 'messages', '0') AS n FROM ${schema}.tasks WHERE id = $1 FOR UPDATE`,
        [taskId],
      );
      if (task === undefined || task.state === "completed" || task.state === "failed") return true;
      const [row] = await session.rows<{ n: string }>(statement, values);
      const now = Number(row?.n);
      const result = JSON.stringify({ messages: Number(task.n) + now });
      await updateTask(session, taskId, { state: now < batch ? "completed" : "running", result });
      return now < batch;
    });
    if (isFinished) return;
  }
}
