import type { ErrorEntry } from "./error-entry.ts";

/** Errors of callers, organizations and quotas. */
// biome-ignore format: a table, aligned so that it reads as one
export const accessErrors = {
  ORGANIZATION_REQUIRED:    { grpc: "INVALID_ARGUMENT",    status: 400, title: "An organization is required",           help: "You belong to several organizations. Send the header Holdfast-Organization with the id of one." },
  UNAUTHENTICATED:          { grpc: "UNAUTHENTICATED",     status: 401, title: "Authentication is required",            help: "Send a user name and password or an API key id and secret as basic credentials, or a token as bearer." },
  CSRF_TOKEN_INVALID:       { grpc: "PERMISSION_DENIED",   status: 403, title: "The CSRF token is missing or wrong",    help: "Send the header Holdfast-Csrf with csrf_token of the session; GET /sessions/current returns it." },
  SCOPE_MISSING:            { grpc: "PERMISSION_DENIED",   status: 403, title: "The credential lacks a scope",          help: "The detail names the missing scope. Use a credential that has it." },
  QUOTA_EXCEEDED:           { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "The organization's quota is used up",   help: "Delete unused resources, or contact an operator. quota names the resource; used, asked and limit are the current, the requested and the largest number." },
  LAST_OWNER:               { grpc: "FAILED_PRECONDITION", status: 409, title: "The last owner cannot be removed",      help: "Make another member owner first, or delete the organization." },
  LAST_OPERATOR:            { grpc: "FAILED_PRECONDITION", status: 409, title: "The last operator cannot be removed",   help: "Make another operator first." },
  ORGANIZATION_NOT_EMPTY:   { grpc: "FAILED_PRECONDITION", status: 409, title: "The organization is not empty",         help: "The detail has the number of its resources. Delete them first." },
} as const satisfies Record<string, ErrorEntry>;
