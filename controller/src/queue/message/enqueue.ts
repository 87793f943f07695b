import { HoldfastError } from "@holdfast/common/errors.ts";
import { createKeyedMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { QueueCalls, SentMessage, TargetQueue } from "./queue-calls.ts";

/** Messages that are enqueued in one transaction with their task. */
export interface SentTask {
  readonly taskId: string;
  readonly bodyHash: string;
  readonly messages: readonly SentMessage[];
  /** True if the id is derived from an Idempotency-Key, so that the request may have been processed before. */
  readonly isKeyed: boolean;
}

/**
 * Resolves after the messages are committed. Throws the errors of `QueueCalls.call` and of `find`, which is called when
 * the messages are sent, because the primary may have changed since the request.
 */
export type Enqueue = (find: () => TargetQueue, task: SentTask, signal: AbortSignal) => Promise<void>;

export function createEnqueue(calls: QueueCalls, large: LargeRequests): Enqueue {
  async function send(
    target: TargetQueue,
    { taskId, bodyHash, messages }: SentTask,
    extraMs: number,
    signal: AbortSignal,
  ) {
    const request = { case: "enqueue", value: { taskId, bodyHash } } as const;
    await calls.call(target, request, "task", { signal, extraMs, messages });
  }

  /** True if the task exists already. The check is much cheaper than another transfer of all messages. */
  async function isEnqueued(
    target: TargetQueue,
    { taskId, bodyHash }: SentTask,
    signal: AbortSignal,
  ): Promise<boolean> {
    const found = await calls.call(target, { case: "readTask", value: { taskId } }, "task", { signal });
    const { exists, kind, queue } = found;
    return exists && kind === "enqueue" && queue === target.queue.metadata.name && found.bodyHash === bodyHash;
  }

  return async (find, task, signal) => {
    const bytes = task.messages.reduce((sum, { payload }) => sum + payload.byteLength, 0);
    if (!large.isLarge(bytes)) return send(find(), task, 0, signal);
    await large.runSequentially(find().service.metadata.id, async () => {
      signal.throwIfAborted();
      const target = find();
      if (task.isKeyed && (await isEnqueued(target, task, signal))) return;
      await send(target, task, large.extraMs(bytes), signal);
    });
  };
}

/** Size in bytes above which requests to a service are sent one after the other; concurrently, all would time out. */
const largeBytes = 1 << 20;
/** Time in which a busy machine completes all concurrent requests of a controller. */
const waitTimeoutMs = 60_000;
/**
 * Assumed transfer rate, a sixteenth of the rate limit of payloads. It is low so that a busy machine does not time out:
 * a repeated request would time out again.
 */
const bytesPerMs = (1 << 20) / 1_000;

/** Sequences large requests, per service. */
interface LargeRequests {
  isLarge(bytes: number): boolean;
  /** Additional time for a request of this size. */
  extraMs(bytes: number): number;
  /** Runs the work after all earlier work of the service; throws MACHINE_UNREACHABLE after waiting 60 s. */
  runSequentially<T>(serviceId: string, work: () => Promise<T>): Promise<T>;
}

export function createLargeRequests(monotonicMs: () => number): LargeRequests {
  const mutex = createKeyedMutex();
  return {
    isLarge: (bytes) => bytes > largeBytes,
    extraMs: (bytes) => Math.ceil(bytes / bytesPerMs),
    runSequentially(serviceId, work) {
      const until = monotonicMs() + waitTimeoutMs;
      return mutex(serviceId, async () => {
        if (monotonicMs() <= until) return work();
        const detail = "The machine did not respond: other large requests were before this one. Try again.";
        throw new HoldfastError("MACHINE_UNREACHABLE", detail, { retryAfterS: 5 });
      });
    },
  };
}
