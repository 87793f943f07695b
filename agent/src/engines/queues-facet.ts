import type { QueueAnswer, QueueRequest } from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import type { EngineQueue } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "./instance.ts";

/**
 * Queues inside the engine's databases. All of it together has few sessions at a time. Throws EngineRefused with the codes of
 * queues, and EngineBusy where the same may work later.
 */
export interface QueuesFacet {
  /** Makes the queue, or brings it to these settings; `adopt`: the live queue of this name gets this id. */
  put(instance: Instance, queue: EngineQueue, options: { adopt: boolean }, signal: AbortSignal): Promise<void>;
  /** Deletes it with its messages, as far as it comes within about 10 s. What is not there, or its database, is gone. */
  remove(
    instance: Instance,
    queue: { readonly database: string; readonly id: string },
    signal: AbortSignal,
  ): Promise<{ gone: boolean; purged: number }>;
  /** Of all databases, those that are deleted too. */
  list(instance: Instance, signal: AbortSignal): Promise<EngineQueue[]>;
  /** Something about the messages of one queue. */
  call(instance: Instance, database: string, request: QueueRequest, signal: AbortSignal): Promise<QueueAnswer>;
  /** All queues together, by names of the catalog of metrics; empty where it has none. */
  sample(instance: Instance, signal: AbortSignal): Promise<Readonly<Record<string, number>>>;
  /** What is to be done each minute, with or without a controller: sweeps, migrations, tasks that were interrupted. */
  keep(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Closes its sessions, of which those at work fail: the engine is about to stop, or another agent to take over. */
  letGo(): void;
}
