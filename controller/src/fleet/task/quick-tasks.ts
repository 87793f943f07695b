import { HoldfastError } from "@holdfast/common/errors.ts";
import { createLane, type Lane } from "@holdfast/common/lane.ts";
import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { NotAsked } from "../not-asked.ts";
import type { Session } from "../session/session.ts";

export interface QuickTasksDeps {
  /** Of one machine and lane. */
  readonly limits: { readonly atOnce: number; readonly inLine: number };
  /** The stream of a machine, if it is here and may be used. */
  readonly sessionOf: (machineId: string) => Session | undefined;
}

/**
 * Quick tasks by the streams that are here. An agent answers whatever it is asked, so that what it has in hand is bounded
 * where it is asked: tasks over `atOnce` wait their turn, and those over `inLine` are refused.
 */
export interface QuickTasks {
  /**
   * Throws MACHINE_UNREACHABLE when the stream breaks or does not bring the result in time, as NotAsked when the stream is not
   * here or the turn did not come in time; RATE_LIMITED when too many wait.
   */
  run(machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult>;
}

export function createQuickTasks({ limits, sessionOf }: QuickTasksDeps): QuickTasks {
  const lanes = new Map<string, { readonly lane: Lane; tasks: number }>();

  async function takeTurn(lane: Lane, machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal) {
    const begunMs = performance.now();
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new NotAsked("The machine was too busy to begin in time.")), timeoutMs);
    const work = () => {
      clearTimeout(timer);
      return send(machineId, task, timeoutMs - (performance.now() - begunMs), signal);
    };
    try {
      return await lane.run(work, signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]));
    } finally {
      clearTimeout(timer);
    }
  }

  async function send(machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult> {
    const session = sessionOf(machineId);
    if (session === undefined) throw new NotAsked("The machine's stream is not open.");
    return session.run(task, timeoutMs, signal);
  }

  return {
    async run(machineId, task, timeoutMs, signal) {
      const name = `${machineId} ${task.lane}`;
      const known = lanes.get(name) ?? { lane: createLane(limits.atOnce), tasks: 0 };
      if (known.lane.waiting >= limits.inLine) throw tooManyWait();
      lanes.set(name, known);
      known.tasks += 1;
      try {
        return await takeTurn(known.lane, machineId, task, timeoutMs, signal);
      } finally {
        known.tasks -= 1;
        if (known.tasks === 0) lanes.delete(name);
      }
    },
  };
}

/** The 429 of a machine with as many waiting tasks as it may have. */
export function tooManyWait(): HoldfastError {
  return new HoldfastError("RATE_LIMITED", "Too many requests wait for the machine.", { retryAfterS: 1 });
}
