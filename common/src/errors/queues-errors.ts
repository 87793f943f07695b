import type { ErrorEntry } from "./error-entry.ts";

/** Errors of queues. */
// biome-ignore format: a table, aligned so that it reads as one
export const queuesErrors = {
  QUEUE_NOT_FOUND:          { grpc: "NOT_FOUND",           status: 404, title: "No such queue",                         help: "List the queues of the service to see their names." },
  QUEUE_EXISTS:             { grpc: "ALREADY_EXISTS",      status: 409, title: "The service has a queue of this name",  help: "Choose another name, or delete the queue and wait until GET returns 404." },
  QUEUE_LIMIT_REACHED:      { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "The limit of queues is reached",        help: "Delete an unused queue. used, asked and limit are the current, the requested and the largest number." },
  QUEUE_NOT_ACTIVE:         { grpc: "FAILED_PRECONDITION", status: 409, title: "The queue is not active",               help: "Only an Active queue accepts and delivers messages; GET the queue to see its status." },
  PAYLOAD_TOO_LARGE:        { grpc: "INVALID_ARGUMENT",    status: 413, title: "A payload is too large",                help: "A payload has at most 262,144 bytes. errors names each larger one. Store large data elsewhere and send a reference." },
} as const satisfies Record<string, ErrorEntry>;
