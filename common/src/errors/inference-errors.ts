import type { ErrorEntry } from "./error-entry.ts";

/** Errors of inference. */
// biome-ignore format: a table, aligned so that it reads as one
export const inferenceErrors = {
  MONTHLY_COST_LIMIT_REQUIRED: { grpc: "INVALID_ARGUMENT", status: 400, title: "A cost limit is required",              help: "Send monthly_cost_limit_cents: inference needs a limit before it is enabled." },
  INFERENCE_PROCESS_FOLLOWS: { grpc: "FAILED_PRECONDITION", status: 409, title: "The process is still connected",  help: "Stop the process first. A process that only restarts keeps its quota leases." },
  LIMIT_STILL_EXCEEDED:     { grpc: "FAILED_PRECONDITION", status: 409, title: "The month's cost exceeds the limit",    help: "Send a monthly_cost_limit_cents above the month's cost, together with reset_circuit." },
  INFERENCE_NOT_CONFIGURED: { grpc: "FAILED_PRECONDITION", status: 422, title: "No inference provider is configured",   help: "Configure a provider of the organization first." },
  BASE_URL_NOT_ALLOWED:     { grpc: "FAILED_PRECONDITION", status: 422, title: "The base URL is not allowed",           help: "Name a public HTTPS server. An operator can allow more networks with HOLDFAST_ALLOW_EGRESS." },
} as const satisfies Record<string, ErrorEntry>;
