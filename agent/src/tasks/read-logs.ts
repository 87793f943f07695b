import type { TaskHandler } from "./task-handler.ts";

export const readLogs: TaskHandler<"readLogs"> = {
  run: (input, { logs, signal }) => logs.read(input, signal),
};
