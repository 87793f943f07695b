import type { SentMessage } from "./encode-request.ts";
import type { LargeRequests } from "./large-requests.ts";
import type { AskedQueue, QueueCalls } from "./queue-calls.ts";

/** Messages that are to be there together with their task. */
export interface SentTask {
  readonly taskId: string;
  readonly bodyHash: string;
  readonly messages: readonly SentMessage[];
  /** Whether the id comes of an Idempotency-Key: then the same request may have been here before. */
  readonly isKeyed: boolean;
}

/**
 * Resolves once the messages are committed; throws as `QueueCalls.call` and `find` do. `find` is called when the
 * messages are sent: the primary may have changed by then.
 */
export type Enqueue = (find: () => AskedQueue, task: SentTask, signal: AbortSignal) => Promise<void>;

export function createEnqueue(calls: QueueCalls, large: LargeRequests): Enqueue {
  async function send(
    asked: AskedQueue,
    { taskId, bodyHash, messages }: SentTask,
    extraMs: number,
    signal: AbortSignal,
  ) {
    const request = { case: "enqueue", value: { taskId, bodyHash } } as const;
    await calls.call(asked, request, "task", { signal, extraMs, messages });
  }

  /** A look costs nothing beside sending all of it again. */
  async function isThere(asked: AskedQueue, { taskId, bodyHash }: SentTask, signal: AbortSignal): Promise<boolean> {
    const found = await calls.call(asked, { case: "readTask", value: { taskId } }, "task", { signal });
    const { exists, kind, queue } = found;
    return exists && kind === "enqueue" && queue === asked.queue.metadata.name && found.bodyHash === bodyHash;
  }

  return async (find, task, signal) => {
    const bytes = task.messages.reduce((sum, { payload }) => sum + payload.byteLength, 0);
    if (!large.isLarge(bytes)) return send(find(), task, 0, signal);
    await large.inTurn(find().service.metadata.id, async () => {
      signal.throwIfAborted();
      const asked = find();
      if (task.isKeyed && (await isThere(asked, task, signal))) return;
      await send(asked, task, large.extraMs(bytes), signal);
    });
  };
}
