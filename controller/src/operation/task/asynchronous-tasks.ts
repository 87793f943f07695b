import assert from "node:assert";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, serve, type ServedService } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type Task, TaskSchema, TaskStatus, TaskService } from "@holdfast/proto/holdfast/v1/task_pb.ts";
import { requireScope } from "#access/caller.ts";
import type { TaskIds, TaskRef } from "./task-ids.ts";

/** Reads tasks of all sources by their ids in the API. */
export interface AsynchronousTasks {
  /** Throws TASK_NOT_FOUND, also for a task that `accepts` rejects, and SCOPE_MISSING for the source's scope. */
  get(id: string, call: Call, accepts?: (ref: TaskRef) => boolean): Promise<Task>;
}

export function createAsynchronousTasks(ids: TaskIds, sources: readonly TaskSource[]): AsynchronousTasks {
  const sourceOf = (type: string): TaskSource | undefined => {
    const [source, ...others] = sources.filter((each) => each.type === type);
    assert(others.length === 0, "each type of task has one source");
    return source;
  };
  return {
    async get(id, call, accepts = () => true) {
      const ref = ids.open(call, id);
      const source = ref === undefined ? undefined : sourceOf(ref.type);
      if (ref === undefined || source === undefined || !accepts(ref)) throw notFound();
      requireScope(call, source.scope);
      const record = await source.read(ref, call);
      if (record === undefined) throw notFound();
      return taskMessage(id, ref.type, record);
    },
  };
}

function notFound(): HoldfastError {
  return new HoldfastError("TASK_NOT_FOUND", "There is no such task in the organization, or it is older than a day.");
}

const statuses: Readonly<Record<TaskRecord["status"], TaskStatus>> = {
  pending: TaskStatus.PENDING,
  running: TaskStatus.RUNNING,
  completed: TaskStatus.COMPLETED,
  failed: TaskStatus.FAILED,
};

function taskMessage(taskId: string, type: string, record: TaskRecord): Task {
  const { status, result, error, createdAt, finishedAt } = record;
  return create(TaskSchema, {
    taskId,
    type,
    status: statuses[status],
    ...(result === undefined ? {} : { result: Buffer.from(result, "utf8") }),
    ...(error === undefined ? {} : { error: { code: error.code, message: error.message } }),
    createdAt: timestampFromMs(createdAt),
    ...(finishedAt === undefined ? {} : { finishedAt: timestampFromMs(finishedAt) }),
  });
}

/** GetTask: returns the state and result of a task. */
export function createTaskApi({ asynchronous }: { readonly asynchronous: AsynchronousTasks }): ServedService {
  return serve(TaskService, { getTask: ({ taskId }, call) => asynchronous.get(taskId, call) });
}

/** Reads the tasks of one type. Each feature whose RPCs return task ids has a source. */
export interface TaskSource {
  /** Type in the API, such as `queue_enqueue`. */
  readonly type: string;
  /** Scope that callers need, the same as for the method that returns the ids. */
  readonly scope: string;
  /**
   * The record of a task; undefined if there is none. Sources retain tasks for at most 24 hours after the start, and
   * return none of services that are not in the caller's organization any more.
   */
  read(ref: TaskRef, call: Call): Promise<TaskRecord | undefined>;
}

export interface TaskRecord {
  readonly status: "pending" | "running" | "completed" | "failed";
  /** Result of a completed task, as JSON. */
  readonly result: string | undefined;
  /** Error of a failed task. */
  readonly error: { readonly code: string; readonly message: string } | undefined;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly finishedAt: number | undefined;
}
