import type { ErrorEntry } from "./error-entry.ts";

/** Errors of operations and tasks. */
// biome-ignore format: a table, aligned so that it reads as one
export const operationsErrors = {
  OPERATION_NOT_FOUND:      { grpc: "NOT_FOUND",           status: 404, title: "No such operation",                     help: "It does not exist or belongs to another organization. List the operations of the service to see their ids." },
  TASK_NOT_FOUND:           { grpc: "NOT_FOUND",           status: 404, title: "No such task",                          help: "Results are available for 24 hours. Send the request again." },
  OPERATION_IN_PROGRESS:    { grpc: "FAILED_PRECONDITION", status: 409, title: "Another operation is in progress",      help: "Wait for the operation named in the problem, then try again." },
} as const satisfies Record<string, ErrorEntry>;
