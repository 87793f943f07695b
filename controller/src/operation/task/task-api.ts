import { type ServedService, serve } from "@holdfast/common/call.ts";
import { TaskService } from "@holdfast/proto/holdfast/v1/task_pb.ts";
import type { AsynchronousTasks } from "./asynchronous-tasks.ts";

/** The RPC of results that are answered later. */
export function createTaskApi({ asynchronous }: { readonly asynchronous: AsynchronousTasks }): ServedService {
  return serve(TaskService, { getTask: ({ taskId }, call) => asynchronous.get(taskId, call) });
}
