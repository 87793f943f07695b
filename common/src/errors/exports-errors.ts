import type { ErrorEntry } from "./error-entry.ts";

/** Errors of exports. */
// biome-ignore format: a table, aligned so that it reads as one
export const exportsErrors = {
  DESTINATION_EXISTS:       { grpc: "ALREADY_EXISTS",      status: 409, title: "An integration of this type exists",    help: "A service can have one integration of each destination type, and an organization one global integration of each. PUT or delete the existing one." },
  EXPORT_LIMIT_REACHED:     { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "The limit of integrations is reached",  help: "Delete an unused integration, or contact an operator. used, asked and limit are the current, the requested and the largest number." },
  DATA_TYPE_NOT_SUPPORTED:  { grpc: "FAILED_PRECONDITION", status: 422, title: "The data type is not supported",        help: "log_aggregator and log_saas take logs only, prometheus_remote_write metrics only. Choose a data_type that the destination supports." },
} as const satisfies Record<string, ErrorEntry>;
