/** The gRPC code of an error, by its name in google.rpc.Code. */
export type GrpcCode =
  | "INVALID_ARGUMENT"
  | "UNAUTHENTICATED"
  | "PERMISSION_DENIED"
  | "NOT_FOUND"
  | "ALREADY_EXISTS"
  | "FAILED_PRECONDITION"
  | "ABORTED"
  | "RESOURCE_EXHAUSTED"
  | "UNIMPLEMENTED"
  | "UNAVAILABLE"
  | "DEADLINE_EXCEEDED"
  | "INTERNAL";

interface Entry {
  readonly grpc: GrpcCode;
  readonly status: number;
  readonly title: string;
  /** Advice for the caller; the text of the error's documentation page. */
  readonly help: string;
}

/** Every error that users can receive. The key in lower case is the stable `code` of the problem document. */
// biome-ignore format: a table, aligned so that it reads as one
export const CATALOG = {
  INVALID_REQUEST:          { grpc: "INVALID_ARGUMENT",    status: 400, title: "The request is invalid",                help: "Each entry of errors names a field and what is wrong with it. Correct them and send the request again." },
  MONTHLY_COST_LIMIT_REQUIRED: { grpc: "INVALID_ARGUMENT", status: 400, title: "A cost limit is required",              help: "Send monthly_cost_limit_cents: inference needs a limit before it is enabled." },
  INVALID_DESCRIPTOR:       { grpc: "INVALID_ARGUMENT",    status: 400, title: "The descriptor is invalid",             help: "Each entry of errors names a field of the descriptor and its fault. GET /schemas/project.json is the schema." },
  SQL_REFUSED:              { grpc: "INVALID_ARGUMENT",    status: 400, title: "The statement is refused",              help: "The console runs a single read-only statement. The detail has the reason and the position." },
  SMTP_REQUIRED:            { grpc: "INVALID_ARGUMENT",    status: 400, title: "A mail server is required",             help: "Sign-in sends mails, and the platform has no relay. Set smtp to a mail server of the app's owner." },
  ORGANIZATION_REQUIRED:    { grpc: "INVALID_ARGUMENT",    status: 400, title: "An organization is required",           help: "You belong to several organizations. Send the header Holdfast-Organization with the id of one." },
  UNAUTHENTICATED:          { grpc: "UNAUTHENTICATED",     status: 401, title: "Authentication is required",            help: "Send a user name and password or an API key id and secret as basic credentials, or a token as bearer." },
  SCOPE_MISSING:            { grpc: "PERMISSION_DENIED",   status: 403, title: "The credential lacks a scope",          help: "The detail names the missing scope. Use a credential that has it." },
  CROSS_SITE_REQUEST:       { grpc: "PERMISSION_DENIED",   status: 403, title: "Requests from other sites are refused", help: "Call the API from a program, or from a page of this installation: Origin must be its own, and Sec-Fetch-Site same-origin or none." },
  NOT_FOUND:                { grpc: "NOT_FOUND",           status: 404, title: "No such path",                          help: "The paths are in /openapi.json." },
  SERVICE_NOT_FOUND:        { grpc: "NOT_FOUND",           status: 404, title: "No such service",                       help: "It does not exist, was deleted, or belongs to another organization. List the services to see their ids." },
  OPERATION_NOT_FOUND:      { grpc: "NOT_FOUND",           status: 404, title: "No such operation",                     help: "It does not exist or belongs to another organization. List the operations of the service to see their ids." },
  TASK_NOT_FOUND:           { grpc: "NOT_FOUND",           status: 404, title: "No such task",                          help: "Results are available for 24 hours. Send the request again." },
  DATABASE_USER_NOT_FOUND:  { grpc: "NOT_FOUND",           status: 404, title: "No such database user",                 help: "List the users of the service to see their names." },
  DATABASE_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such database",                      help: "List the databases of the service to see their names." },
  BACKUP_NOT_FOUND:         { grpc: "NOT_FOUND",           status: 404, title: "No such backup",                        help: "It does not exist, was deleted or has expired. List the backups of the service to see their ids." },
  OBJECT_NOT_FOUND:         { grpc: "NOT_FOUND",           status: 404, title: "No such object",                        help: "It does not exist, was deleted, or belongs to another organization. List the objects of its kind to see their ids." },
  QUEUE_NOT_FOUND:          { grpc: "NOT_FOUND",           status: 404, title: "No such queue",                         help: "List the queues of the service to see their names." },
  APP_NOT_FOUND:            { grpc: "NOT_FOUND",           status: 404, title: "No such app",                           help: "It does not exist or belongs to another organization. List the apps to see their ids." },
  AUTH_NOT_ENABLED:         { grpc: "NOT_FOUND",           status: 404, title: "The app has no sign-in",                help: "Enable it with POST auth/enable." },
  WEBHOOK_NOT_FOUND:        { grpc: "NOT_FOUND",           status: 404, title: "No such webhook",                       help: "It does not exist or belongs to another organization. List the webhooks to see their ids." },
  DELIVERY_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such delivery",                      help: "Deliveries are available for 30 days. List those of the webhook to see their ids." },
  PROJECT_NOT_FOUND:        { grpc: "NOT_FOUND",           status: 404, title: "No such project",                       help: "It does not exist or belongs to another organization. List the projects to see their names." },
  STACK_NOT_FOUND:          { grpc: "NOT_FOUND",           status: 404, title: "No such stack",                         help: "It does not exist, was deleted, or belongs to another organization. List the stacks to see their ids." },
  PIPELINE_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such pipeline",                      help: "It does not exist, was deleted, or belongs to another organization. List the pipelines to see their ids." },
  TEMPLATE_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such template",                      help: "List the templates to see their names." },
  METHOD_NOT_ALLOWED:       { grpc: "UNIMPLEMENTED",       status: 405, title: "The path has no such method",           help: "The header Allow names the methods of the path." },
  NAME_TAKEN:               { grpc: "ALREADY_EXISTS",      status: 409, title: "The name is taken",                     help: "Choose another name, or wait until the object with this name is deleted." },
  WRONG_STATE:              { grpc: "FAILED_PRECONDITION", status: 409, title: "Not possible in this state",            help: "The detail names the state and how to leave it." },
  OPERATION_IN_PROGRESS:    { grpc: "FAILED_PRECONDITION", status: 409, title: "Another operation is in progress",      help: "Wait for the operation named in the problem, then try again." },
  NOTHING_PENDING:          { grpc: "FAILED_PRECONDITION", status: 409, title: "No update is pending",                  help: "There is nothing to apply. GET the service's maintenance to see its window and pending updates." },
  INFERENCE_PROCESS_FOLLOWS: { grpc: "FAILED_PRECONDITION", status: 409, title: "The process is still connected",  help: "Stop the process first. A process that only restarts keeps its quota leases." },
  LIMIT_STILL_EXCEEDED:     { grpc: "FAILED_PRECONDITION", status: 409, title: "The month's cost exceeds the limit",    help: "Send a monthly_cost_limit_cents above the month's cost, together with reset_circuit." },
  DELETION_PROTECTED:       { grpc: "FAILED_PRECONDITION", status: 409, title: "The service is protected from deletion",help: "PATCH deletion_protection to false first." },
  MANAGED_BY_PARENT:        { grpc: "FAILED_PRECONDITION", status: 409, title: "The object is managed by another one",  help: "managed_by names the parent. Change the parent, which applies the change to its members." },
  PROJECT_BUSY:             { grpc: "FAILED_PRECONDITION", status: 409, title: "The project is being deployed or deleted", help: "Wait until it is Running, Failed or Deleted, or abort the deployment that the problem names." },
  PLAN_CHANGED:             { grpc: "ABORTED",             status: 409, title: "The plan has changed",                  help: "The project or its resources were changed. Plan again, review the changes, and send the new digest." },
  COST_DRIFT:               { grpc: "ABORTED",             status: 409, title: "The cost has changed",                  help: "The problem has the current monthly_cost. Preview again, and accept the new cost." },
  UPGRADE_IN_PROGRESS:      { grpc: "FAILED_PRECONDITION", status: 409, title: "The stack is being upgraded",           help: "Wait for the migration that the problem names." },
  QUOTA_EXCEEDED:           { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "The organization's quota is used up",   help: "Delete unused resources, or contact an operator. quota names the resource; used, asked and limit are the figures." },
  LAST_OWNER:               { grpc: "FAILED_PRECONDITION", status: 409, title: "The last owner cannot be removed",      help: "Make another member owner first, or delete the organization." },
  LAST_OPERATOR:            { grpc: "FAILED_PRECONDITION", status: 409, title: "The last operator cannot be removed",   help: "Make another operator first." },
  ORGANIZATION_NOT_EMPTY:   { grpc: "FAILED_PRECONDITION", status: 409, title: "The organization is not empty",         help: "The detail has the number of its resources. Delete them first." },
  WEBHOOK_LIMIT_REACHED:    { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "The limit of webhooks is reached",      help: "Delete an unused webhook, or contact an operator. used, asked and limit are the figures." },
  DESTINATION_EXISTS:       { grpc: "ALREADY_EXISTS",      status: 409, title: "An integration of this type exists",    help: "A service can have one integration of each destination type, and an organization one global integration of each. PUT or delete the existing one." },
  EXPORT_LIMIT_REACHED:     { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "The limit of integrations is reached",  help: "Delete an unused integration, or contact an operator. used, asked and limit are the figures." },
  QUEUE_EXISTS:             { grpc: "ALREADY_EXISTS",      status: 409, title: "The service has a queue of this name",  help: "Choose another name, or delete the queue and wait until GET answers 404." },
  QUEUE_LIMIT_REACHED:      { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "The limit of queues is reached",        help: "Delete an unused queue. used, asked and limit are the figures." },
  QUEUE_NOT_ACTIVE:         { grpc: "FAILED_PRECONDITION", status: 409, title: "The queue is not active",               help: "Only an Active queue accepts and delivers messages; GET the queue to see its status." },
  ATTACHMENT_IN_USE:        { grpc: "FAILED_PRECONDITION", status: 409, title: "The attachment is in use",              help: "The app's users are in this database. POST auth/disable first." },
  AUTH_ALREADY_ENABLED:     { grpc: "FAILED_PRECONDITION", status: 409, title: "The app has sign-in already",           help: "Change it with PATCH auth, or disable it with POST auth/disable." },
  AUTH_NOT_ACTIVE:          { grpc: "FAILED_PRECONDITION", status: 409, title: "The sign-in is not active",             help: "GET auth to see its status and failure reason." },
  USER_EXISTS:              { grpc: "ALREADY_EXISTS",      status: 409, title: "The user exists",                       help: "List the users with this address to see the id." },
  PASSWORD_NOT_KNOWN:       { grpc: "FAILED_PRECONDITION", status: 409, title: "The password was changed in the engine",help: "The platform does not have the current password. Set a new one with reset-password." },
  PRECONDITION_FAILED:      { grpc: "ABORTED",             status: 412, title: "The object has changed",                help: "Read it again and send its new ETag in If-Match." },
  BODY_TOO_LARGE:           { grpc: "INVALID_ARGUMENT",    status: 413, title: "The body is too large",                 help: "The detail has the limit of this method." },
  PAYLOAD_TOO_LARGE:        { grpc: "INVALID_ARGUMENT",    status: 413, title: "A payload is too large",                help: "A payload has at most 262,144 bytes. errors names each larger one. Store large data elsewhere and send a reference." },
  UNSUPPORTED_MEDIA_TYPE:   { grpc: "INVALID_ARGUMENT",    status: 415, title: "The body must be JSON",                 help: "Send Content-Type: application/json." },
  NOT_POSSIBLE:             { grpc: "FAILED_PRECONDITION", status: 422, title: "The request cannot be fulfilled",       help: "The detail has the reason." },
  ATTACHMENT_NOT_POSTGRESQL: { grpc: "FAILED_PRECONDITION", status: 422, title: "The attachment is not PostgreSQL",     help: "The users of an app are stored in a PostgreSQL service. Attach one." },
  ATTACHMENT_UNHEALTHY:     { grpc: "FAILED_PRECONDITION", status: 422, title: "The attachment is not healthy",         help: "Its service must be Running. GET the service to see its state." },
  CUSTOM_DOMAIN_NOT_VERIFIED: { grpc: "FAILED_PRECONDITION", status: 422, title: "The domain is not verified",          help: "Use the fallback domain, or have a domain of the app verified first." },
  KIND_NOT_AVAILABLE:       { grpc: "FAILED_PRECONDITION", status: 422, title: "The resource kind is not available",        help: "The problem names the kind, which this installation does not support yet." },
  TEMPLATE_UNAVAILABLE:     { grpc: "FAILED_PRECONDITION", status: 422, title: "The template is not available",         help: "The detail names what this installation lacks." },
  UPGRADE_BLOCKED:          { grpc: "FAILED_PRECONDITION", status: 422, title: "The upgrade is blocked",                help: "blocked_reasons lists what cannot be changed in place. Nothing was changed." },
  PORT_80_RESERVED:         { grpc: "FAILED_PRECONDITION", status: 422, title: "Port 80 is reserved",                   help: "An app that others attach must listen on another port: 80 is for HTTPS from outside." },
  INFERENCE_NOT_CONFIGURED: { grpc: "FAILED_PRECONDITION", status: 422, title: "No inference provider is configured",   help: "Configure a provider of the organization first." },
  RESTORE_POINT_UNAVAILABLE: { grpc: "FAILED_PRECONDITION", status: 422, title: "The restore point is not available",   help: "Choose a time between earliest and latest, outside the gaps." },
  DATA_TYPE_NOT_SUPPORTED:  { grpc: "FAILED_PRECONDITION", status: 422, title: "The data type is not supported",        help: "log_aggregator and log_saas take logs only, prometheus_remote_write metrics only. Choose a data_type that the destination supports." },
  TARGET_NOT_ALLOWED:       { grpc: "FAILED_PRECONDITION", status: 422, title: "The target is not allowed",             help: "Name a public HTTP server. An operator can allow more networks with HOLDFAST_ALLOW_EGRESS." },
  BASE_URL_NOT_ALLOWED:     { grpc: "FAILED_PRECONDITION", status: 422, title: "The base URL is not allowed",           help: "Name a public HTTPS server. An operator can allow more networks with HOLDFAST_ALLOW_EGRESS." },
  IDEMPOTENCY_KEY_REUSED:   { grpc: "FAILED_PRECONDITION", status: 422, title: "The Idempotency-Key was used before",   help: "A key belongs to one request. Send another key with another body or query." },
  ENGINE_REFUSED:           { grpc: "FAILED_PRECONDITION", status: 422, title: "The engine refused",                    help: "Correct the cause in the detail, which contains the engine's own message." },
  NOT_SUPPORTED:            { grpc: "FAILED_PRECONDITION", status: 422, title: "The engine does not support this",      help: "The catalog lists the features of each engine." },
  RATE_LIMITED:             { grpc: "RESOURCE_EXHAUSTED",  status: 429, title: "Too many requests",                     help: "Wait for the seconds in Retry-After." },
  INTERNAL:                 { grpc: "INTERNAL",            status: 500, title: "An internal error occurred",            help: "The server's log has the cause under the problem's instance. Please report it." },
  NOT_CONFIGURED:           { grpc: "UNIMPLEMENTED",       status: 501, title: "Not configured on this installation",   help: "An operator can configure it; see docs/operations.md." },
  STORE_UNAVAILABLE:        { grpc: "UNAVAILABLE",         status: 503, title: "The control plane's store is unavailable", help: "Running services continue. Try again after the seconds in Retry-After." },
  MACHINE_UNREACHABLE:      { grpc: "UNAVAILABLE",         status: 503, title: "The machine does not respond",          help: "Nothing was changed. Try again; the service's health shows when its machine is back." },
  STORAGE_FULL:             { grpc: "RESOURCE_EXHAUSTED",  status: 507, title: "The service's disk is full",            help: "Nothing was written. Delete data after POST enable-writes, or expand the storage; then send the request again." },
  MODEL_UNREACHABLE:        { grpc: "UNAVAILABLE",         status: 503, title: "The model does not respond",            help: "Nothing was run. Try again; the controller's log has the cause." },
} as const satisfies Record<string, Entry>;

export type ErrorKey = keyof typeof CATALOG;

/** One fault of the input. `field` is a path such as `allowed_cidrs[0]`; `pointer` is null for a query parameter. */
export interface FieldFault {
  readonly field: string;
  readonly pointer: string | null;
  readonly code: string;
  readonly detail: string;
}

/** Maximum number of faults in an error, and their maximum size as JSON. The first fault is always included. */
export const errorsMax = 20;
const errorsBytesMax = 6 * 1024;
const detailBytesMax = 1_500;

interface Extra {
  readonly errors?: readonly FieldFault[];
  /** Number of faults that `errors` does not include. */
  readonly errorsOmitted?: number;
  /** Further members of the problem document, such as `status` and `operation` of a 409. */
  readonly members?: Readonly<Record<string, unknown>>;
  readonly retryAfterS?: number;
  readonly allow?: readonly string[];
  readonly cause?: unknown;
}

/** The only error that reaches users: a catalog entry with a detail for this case. */
export class HoldfastError extends Error {
  readonly key: ErrorKey;
  readonly detail: string;
  /** At most `errorsMax` faults. */
  readonly errors: readonly FieldFault[];
  readonly errorsOmitted: number;
  readonly members: Readonly<Record<string, unknown>>;
  readonly retryAfterS: number | undefined;
  readonly allow: readonly string[] | undefined;

  constructor(key: ErrorKey, detail: string, extra: Extra = {}) {
    super(`${key}: ${detail}`, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.name = "HoldfastError";
    this.key = key;
    this.detail = truncated(detail, detailBytesMax);
    const { errors = [], errorsOmitted = 0 } = extra;
    this.errors = boundedFaults(errors);
    this.errorsOmitted = errorsOmitted + errors.length - this.errors.length;
    this.members = extra.members ?? {};
    this.retryAfterS = extra.retryAfterS ?? (CATALOG[key].status === 503 ? 1 : undefined);
    this.allow = extra.allow;
  }

  /** Converts anything thrown: a HoldfastError stays as it is, everything else becomes INTERNAL without its cause. */
  static from(error: unknown): HoldfastError {
    if (error instanceof HoldfastError) return error;
    return new HoldfastError("INTERNAL", "The request could not be finished.", { cause: error });
  }

  get code(): string {
    return this.key.toLowerCase();
  }

  get entry(): Entry {
    return CATALOG[this.key];
  }
}

function boundedFaults(errors: readonly FieldFault[]): readonly FieldFault[] {
  let bytes = 0;
  const end = errors.slice(0, errorsMax).findIndex((fault, index) => {
    bytes += Buffer.byteLength(JSON.stringify(fault));
    return index > 0 && bytes > errorsBytesMax;
  });
  return errors.slice(0, end < 0 ? errorsMax : end);
}

/** Truncates to a number of UTF-8 bytes. */
function truncated(text: string, bytesMax: number): string {
  if (text.length <= bytesMax / 3 || Buffer.byteLength(text) <= bytesMax) return text;
  return `${new TextDecoder().decode(Buffer.from(text).subarray(0, bytesMax)).replace(/\uFFFD+$/, "")}…`;
}

/** INVALID_REQUEST about fields of a JSON body; `field` in dotted form with indices. */
export function invalid(...faults: { field: string; code: string; detail: string }[]): HoldfastError {
  const errors = faults.map((fault) => ({ ...fault, pointer: pointerOf(fault.field) }));
  return new HoldfastError("INVALID_REQUEST", errors.map((e) => `${e.field}: ${e.detail}`).join("; "), { errors });
}

/** RFC 6901 pointer of a dotted path: `allowed_cidrs[0]` -> `/allowed_cidrs/0`. */
export function pointerOf(field: string): string {
  const parts = field.replaceAll(/\[([^\]]*)\]/g, ".$1").split(".");
  return parts.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
