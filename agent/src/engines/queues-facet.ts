import type { QueueResponse, QueueRequest } from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import type { EngineQueue } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "./instance.ts";

/**
 * Message queues inside the engine's databases. All calls share a few sessions. Throws EngineRefused with the codes of
 * queues, and EngineBusy if a retry may succeed.
 */
export interface QueuesFacet {
  /** Creates the queue or applies these settings; with `adopt` an existing queue of this name gets this id. */
  put(instance: Instance, queue: EngineQueue, options: { adopt: boolean }, signal: AbortSignal): Promise<void>;
  /**
   * Deletes the queue and its messages, as far as possible within about 10 s. A missing queue or database counts as
   * deleted.
   */
  remove(
    instance: Instance,
    queue: { readonly database: string; readonly id: string },
    signal: AbortSignal,
  ): Promise<{ deleted: boolean; purged: number }>;
  /** Queues of all databases, deleted ones included. */
  list(instance: Instance, signal: AbortSignal): Promise<EngineQueue[]>;
  /** Runs one request on the messages of a queue. */
  call(instance: Instance, database: string, request: QueueRequest, signal: AbortSignal): Promise<QueueResponse>;
  /** Metrics of all queues together, by names of the metric catalog; empty without queues. */
  sample(instance: Instance, signal: AbortSignal): Promise<Readonly<Record<string, number>>>;
  /** Maintenance that is due each minute, with or without a controller: sweeps, migrations, interrupted tasks. */
  maintain(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Closes all sessions; work in progress fails. Called before the engine stops or another agent takes over. */
  closeSessions(): void;
}
