import type { ErrorEntry } from "./error-entry.ts";

/** Errors of any request. */
// biome-ignore format: a table, aligned so that it reads as one
export const requestErrors = {
  INVALID_REQUEST:          { grpc: "INVALID_ARGUMENT",    status: 400, title: "The request is invalid",                help: "Each entry of errors names a field and what is wrong with it. Correct them and send the request again." },
  CROSS_SITE_REQUEST:       { grpc: "PERMISSION_DENIED",   status: 403, title: "Requests from other sites are refused", help: "Call the API from a program, or from a page of this installation: Origin must be its own, and Sec-Fetch-Site same-origin or none." },
  NOT_FOUND:                { grpc: "NOT_FOUND",           status: 404, title: "No such path",                          help: "The paths are in /openapi.json." },
  OBJECT_NOT_FOUND:         { grpc: "NOT_FOUND",           status: 404, title: "No such object",                        help: "It does not exist, was deleted, or belongs to another organization. List the objects of its kind to see their ids." },
  METHOD_NOT_ALLOWED:       { grpc: "UNIMPLEMENTED",       status: 405, title: "The path has no such method",           help: "The header Allow names the methods of the path." },
  NAME_TAKEN:               { grpc: "ALREADY_EXISTS",      status: 409, title: "The name is taken",                     help: "Choose another name, or wait until the object with this name is deleted." },
  WRONG_STATE:              { grpc: "FAILED_PRECONDITION", status: 409, title: "Not possible in this state",            help: "The detail names the state and how to leave it." },
  MANAGED_BY_PARENT:        { grpc: "FAILED_PRECONDITION", status: 409, title: "The object is managed by another one",  help: "managed_by names the parent. The detail has what is possible while the object belongs to it." },
  PRECONDITION_FAILED:      { grpc: "ABORTED",             status: 412, title: "The object has changed",                help: "Read it again and send its new ETag in If-Match." },
  BODY_TOO_LARGE:           { grpc: "INVALID_ARGUMENT",    status: 413, title: "The body is too large",                 help: "The detail has the limit of this method." },
  UNSUPPORTED_MEDIA_TYPE:   { grpc: "INVALID_ARGUMENT",    status: 415, title: "The body must be JSON",                 help: "Send Content-Type: application/json." },
  NOT_POSSIBLE:             { grpc: "FAILED_PRECONDITION", status: 422, title: "The request cannot be fulfilled",       help: "Change what the reason names, and send the request again." },
  TARGET_NOT_ALLOWED:       { grpc: "FAILED_PRECONDITION", status: 422, title: "The target is not allowed",             help: "Name a public HTTP server. An operator can allow more networks with HOLDFAST_ALLOW_EGRESS." },
  IDEMPOTENCY_KEY_REUSED:   { grpc: "FAILED_PRECONDITION", status: 422, title: "The Idempotency-Key was used before",   help: "A key belongs to one request. Send another key with another body or query." },
  RATE_LIMITED:             { grpc: "RESOURCE_EXHAUSTED",  status: 429, title: "Too many requests",                     help: "Wait for the seconds in Retry-After." },
  INTERNAL:                 { grpc: "INTERNAL",            status: 500, title: "An internal error occurred",            help: "The server's log has the cause under the problem's instance. Please report it." },
  NOT_CONFIGURED:           { grpc: "UNIMPLEMENTED",       status: 501, title: "Not configured on this installation",   help: "An operator can configure it; see docs/operate/operations.md." },
  STORE_UNAVAILABLE:        { grpc: "UNAVAILABLE",         status: 503, title: "The control plane's store is unavailable", help: "Running services continue. Try again after the seconds in Retry-After." },
} as const satisfies Record<string, ErrorEntry>;
