import type { ErrorEntry } from "./error-entry.ts";

/** Errors of the query console. */
// biome-ignore format: a table, aligned so that it reads as one
export const consoleErrors = {
  SQL_REFUSED:              { grpc: "INVALID_ARGUMENT",    status: 400, title: "The statement is refused",              help: "The console runs a single read-only statement. The detail has the reason and the position." },
  MODEL_UNREACHABLE:        { grpc: "UNAVAILABLE",         status: 503, title: "The model does not respond",            help: "Nothing was run. Try again; the controller's log has the cause." },
} as const satisfies Record<string, ErrorEntry>;
