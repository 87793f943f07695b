import type { ErrorEntry } from "./error-entry.ts";

/** Errors of projects, stacks and pipelines. */
// biome-ignore format: a table, aligned so that it reads as one
export const bundlesErrors = {
  INVALID_DESCRIPTOR:       { grpc: "INVALID_ARGUMENT",    status: 400, title: "The descriptor is invalid",             help: "Each entry of errors names a field of the descriptor and its fault. GET /schemas/project.json is the schema." },
  PROJECT_NOT_FOUND:        { grpc: "NOT_FOUND",           status: 404, title: "No such project",                       help: "It does not exist or belongs to another organization. List the projects to see their names." },
  STACK_NOT_FOUND:          { grpc: "NOT_FOUND",           status: 404, title: "No such stack",                         help: "It does not exist, was deleted, or belongs to another organization. List the stacks to see their ids." },
  PIPELINE_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such pipeline",                      help: "It does not exist, was deleted, or belongs to another organization. List the pipelines to see their ids." },
  TEMPLATE_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such template",                      help: "List the templates to see their names." },
  PROJECT_BUSY:             { grpc: "FAILED_PRECONDITION", status: 409, title: "The project is being deployed or deleted", help: "Wait until it is Running, Failed or Deleted, or abort the deployment that the problem names." },
  PLAN_CHANGED:             { grpc: "ABORTED",             status: 409, title: "The plan has changed",                  help: "The project or its resources were changed. Plan again, review the changes, and send the new digest." },
  COST_DRIFT:               { grpc: "ABORTED",             status: 409, title: "The cost has changed",                  help: "The problem has the current monthly_cost. Preview again, and accept the new cost." },
  UPGRADE_IN_PROGRESS:      { grpc: "FAILED_PRECONDITION", status: 409, title: "The stack is being upgraded",           help: "Wait for the migration that the problem names." },
  KIND_NOT_AVAILABLE:       { grpc: "FAILED_PRECONDITION", status: 422, title: "The resource kind is not available",        help: "The problem names the kind, which this installation does not support yet." },
  TEMPLATE_UNAVAILABLE:     { grpc: "FAILED_PRECONDITION", status: 422, title: "The template is not available",         help: "The detail names what this installation lacks." },
  UPGRADE_BLOCKED:          { grpc: "FAILED_PRECONDITION", status: 422, title: "The upgrade is blocked",                help: "blocked_reasons lists what cannot be changed in place. Nothing was changed." },
  NO_FLOATING_IP:           { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "No floating IP is free",                help: "An operator sets the addresses in HOLDFAST_FLOATING_IPS. If other apps have all of them, release one." },
  PORT_80_RESERVED:         { grpc: "FAILED_PRECONDITION", status: 422, title: "Port 80 is reserved",                   help: "An app that others attach must listen on another port: port 80 of the app's name serves its public HTTPS." },
} as const satisfies Record<string, ErrorEntry>;
