/** How an error is told over gRPC; names of google.rpc.Code. */
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
  /** What the caller can do; the text of the error's page in the docs. */
  readonly help: string;
}

/** Every error that a user can see. The key in lower case is the stable `code` of the problem document. */
// biome-ignore format: a table, aligned so that it reads as one
export const CATALOG = {
  INVALID_REQUEST:          { grpc: "INVALID_ARGUMENT",    status: 400, title: "The request is not valid",              help: "Each entry of errors names a field and what is wrong with it. Correct them and send the request again." },
  MONTHLY_COST_LIMIT_REQUIRED: { grpc: "INVALID_ARGUMENT", status: 400, title: "The first settings need a limit",       help: "Send monthly_cost_limit_cents: without a limit nothing of inference works." },
  INVALID_DESCRIPTOR:       { grpc: "INVALID_ARGUMENT",    status: 400, title: "The descriptor is not valid",           help: "Each entry of errors names a place in the descriptor and what is wrong there. GET /schemas/project.json is what it is checked against." },
  SQL_REFUSED:              { grpc: "INVALID_ARGUMENT",    status: 400, title: "The statement is refused",              help: "The console runs one statement that only reads. The detail says what stands against this one, and where." },
  SMTP_REQUIRED:            { grpc: "INVALID_ARGUMENT",    status: 400, title: "A mail server is needed",               help: "Sign-in is by mail, and the platform relays none. Give smtp with the server of the app's owner." },
  ORGANIZATION_REQUIRED:    { grpc: "INVALID_ARGUMENT",    status: 400, title: "Name the organization",                 help: "You belong to several organizations. Send the header Holdfast-Organization with the id of one." },
  UNAUTHENTICATED:          { grpc: "UNAUTHENTICATED",     status: 401, title: "Sign in first",                         help: "Send a user name and password or an API key id and secret as basic credentials, or a token as bearer." },
  SCOPE_MISSING:            { grpc: "PERMISSION_DENIED",   status: 403, title: "The credential may not do this",        help: "The detail names the scope that is missing. Use a credential that has it." },
  CROSS_SITE_REQUEST:       { grpc: "PERMISSION_DENIED",   status: 403, title: "Requests from other sites are refused", help: "Call the API from a program, or from a page of this installation: Origin must be its own, and Sec-Fetch-Site same-origin or none." },
  NOT_FOUND:                { grpc: "NOT_FOUND",           status: 404, title: "No such path",                          help: "The paths are in /openapi.json." },
  SERVICE_NOT_FOUND:        { grpc: "NOT_FOUND",           status: 404, title: "No such service",                       help: "It does not exist, is gone, or belongs to another organization. List the services to see their ids." },
  OPERATION_NOT_FOUND:      { grpc: "NOT_FOUND",           status: 404, title: "No such operation",                     help: "It does not exist or belongs to another organization. List the operations of the service to see their ids." },
  TASK_NOT_FOUND:           { grpc: "NOT_FOUND",           status: 404, title: "No such task",                          help: "Results are kept for 24 hours, under the ids that the API handed out. Send the request again." },
  DATABASE_USER_NOT_FOUND:  { grpc: "NOT_FOUND",           status: 404, title: "No such database user",                 help: "List the users of the service to see their names." },
  DATABASE_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such database",                      help: "List the databases of the service to see their names." },
  BACKUP_NOT_FOUND:         { grpc: "NOT_FOUND",           status: 404, title: "No such backup",                        help: "It does not exist, was deleted or has expired. List the backups of the service to see their ids." },
  OBJECT_NOT_FOUND:         { grpc: "NOT_FOUND",           status: 404, title: "No such object",                        help: "It does not exist, is gone, or belongs to another organization. List its kind to see the ids." },
  QUEUE_NOT_FOUND:          { grpc: "NOT_FOUND",           status: 404, title: "No such queue",                         help: "List the queues of the service to see their names." },
  APP_NOT_FOUND:            { grpc: "NOT_FOUND",           status: 404, title: "No such app",                           help: "It does not exist or belongs to another organization. List the apps to see their ids." },
  AUTH_NOT_ENABLED:         { grpc: "NOT_FOUND",           status: 404, title: "The app has no sign-in",                help: "POST auth/enable gives it one." },
  WEBHOOK_NOT_FOUND:        { grpc: "NOT_FOUND",           status: 404, title: "No such webhook",                       help: "It does not exist or belongs to another organization. List the webhooks to see their ids." },
  DELIVERY_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such delivery",                      help: "Deliveries are kept for 30 days. List those of the webhook to see their ids." },
  PROJECT_NOT_FOUND:        { grpc: "NOT_FOUND",           status: 404, title: "No such project",                       help: "It does not exist or belongs to another organization. List the projects to see their names." },
  STACK_NOT_FOUND:          { grpc: "NOT_FOUND",           status: 404, title: "No such stack",                         help: "It does not exist, is gone, or belongs to another organization. List the stacks to see their ids." },
  PIPELINE_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such pipeline",                      help: "It does not exist, is gone, or belongs to another organization. List the pipelines to see their ids." },
  TEMPLATE_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such template",                      help: "List the templates to see their names." },
  METHOD_NOT_ALLOWED:       { grpc: "UNIMPLEMENTED",       status: 405, title: "The path has no such method",           help: "The header Allow names the methods of the path." },
  NAME_TAKEN:               { grpc: "ALREADY_EXISTS",      status: 409, title: "The name is taken",                     help: "Choose another name, or wait until the object with this name is gone." },
  WRONG_STATE:              { grpc: "FAILED_PRECONDITION", status: 409, title: "Not possible in this state",            help: "The detail names the state and what would lead out of it." },
  OPERATION_IN_PROGRESS:    { grpc: "FAILED_PRECONDITION", status: 409, title: "Another operation is in progress",      help: "Wait for the operation named in the problem, then try again." },
  NOTHING_PENDING:          { grpc: "FAILED_PRECONDITION", status: 409, title: "No update is pending",                  help: "There is nothing to apply. GET the service's maintenance to see its window and what is pending." },
  INFERENCE_PROCESS_FOLLOWS: { grpc: "FAILED_PRECONDITION", status: 409, title: "The process is not lost",         help: "Stop the process first; one that only restarts keeps what it holds." },
  LIMIT_STILL_EXCEEDED:     { grpc: "FAILED_PRECONDITION", status: 409, title: "The month has cost the limit already",  help: "Send a monthly_cost_limit_cents above what the month has cost, together with reset_circuit." },
  DELETION_PROTECTED:       { grpc: "FAILED_PRECONDITION", status: 409, title: "The service is protected from deletion",help: "PATCH deletion_protection to false first." },
  MANAGED_BY_PARENT:        { grpc: "FAILED_PRECONDITION", status: 409, title: "The object belongs to another one",     help: "managed_by names the parent. Do it to the parent, which then does it to what belongs to it." },
  PROJECT_BUSY:             { grpc: "FAILED_PRECONDITION", status: 409, title: "The project is being deployed or deleted", help: "Wait until it is Running, Failed or Deleted, or abort the deployment that the problem names." },
  PLAN_CHANGED:             { grpc: "ABORTED",             status: 409, title: "The plan is another one now",           help: "Somebody changed the project or its resources. Plan again, look at what changes, and send the new digest." },
  COST_DRIFT:               { grpc: "ABORTED",             status: 409, title: "The cost is another one",               help: "The problem has the cost of now as monthly_cost. Look at the preview again, and accept that." },
  UPGRADE_IN_PROGRESS:      { grpc: "FAILED_PRECONDITION", status: 409, title: "The stack is being upgraded",           help: "Wait for the migration that the problem names." },
  QUOTA_EXCEEDED:           { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "The organization's quota is used up",   help: "Delete what is not needed, or ask an operator for more. quota names what is used up; used, asked and limit are the figures." },
  LAST_OWNER:               { grpc: "FAILED_PRECONDITION", status: 409, title: "The last owner stays",                  help: "Make another member owner first, or delete the organization." },
  LAST_OPERATOR:            { grpc: "FAILED_PRECONDITION", status: 409, title: "The last operator stays",               help: "Make another operator first." },
  ORGANIZATION_NOT_EMPTY:   { grpc: "FAILED_PRECONDITION", status: 409, title: "The organization still has something",  help: "The detail has the figure. Delete what is there first." },
  WEBHOOK_LIMIT_REACHED:    { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "No more webhooks",                      help: "Delete a webhook that is not needed, or ask an operator for more. used, asked and limit are the figures." },
  DESTINATION_EXISTS:       { grpc: "ALREADY_EXISTS",      status: 409, title: "There is an integration of this type",  help: "A service has one integration of each destination type, and an organization one global of each. PUT or delete the one that is there." },
  EXPORT_LIMIT_REACHED:     { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "No more integrations",                  help: "Delete an integration that is not needed, or ask an operator for more. used, asked and limit are the figures." },
  QUEUE_EXISTS:             { grpc: "ALREADY_EXISTS",      status: 409, title: "The service has a queue of this name",  help: "Choose another name, or delete the queue and wait until GET answers 404." },
  QUEUE_LIMIT_REACHED:      { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "No more queues",                        help: "Delete a queue that is not needed. used, asked and limit are the figures." },
  QUEUE_NOT_ACTIVE:         { grpc: "FAILED_PRECONDITION", status: 409, title: "The queue is not active",               help: "Only an Active queue takes and gives messages; GET the queue to see its status." },
  ATTACHMENT_IN_USE:        { grpc: "FAILED_PRECONDITION", status: 409, title: "The attachment is in use",              help: "The app's users are in this database. POST auth/disable first." },
  AUTH_ALREADY_ENABLED:     { grpc: "FAILED_PRECONDITION", status: 409, title: "The app has a sign-in",                 help: "PATCH auth changes it; POST auth/disable ends it." },
  AUTH_NOT_ACTIVE:          { grpc: "FAILED_PRECONDITION", status: 409, title: "The sign-in is not active",             help: "GET auth to see its status, and why it failed." },
  USER_EXISTS:              { grpc: "ALREADY_EXISTS",      status: 409, title: "The app has this user",                 help: "List the users with this address to see the id." },
  PASSWORD_NOT_KNOWN:       { grpc: "FAILED_PRECONDITION", status: 409, title: "The password was changed in the engine",help: "The platform does not know the current password. Reset it with reset-password." },
  PRECONDITION_FAILED:      { grpc: "ABORTED",             status: 412, title: "The object has changed",                help: "Read it again and send its new ETag in If-Match." },
  BODY_TOO_LARGE:           { grpc: "INVALID_ARGUMENT",    status: 413, title: "The body is too large",                 help: "The detail has the limit of this method." },
  PAYLOAD_TOO_LARGE:        { grpc: "INVALID_ARGUMENT",    status: 413, title: "A payload is too large",                help: "A payload has at most 262,144 bytes. errors names each one that has more; keep large data elsewhere and send where it is." },
  UNSUPPORTED_MEDIA_TYPE:   { grpc: "INVALID_ARGUMENT",    status: 415, title: "The body must be JSON",                 help: "Send Content-Type: application/json." },
  NOT_POSSIBLE:             { grpc: "FAILED_PRECONDITION", status: 422, title: "Valid, but cannot be done",             help: "The detail says what stands against it." },
  ATTACHMENT_NOT_POSTGRESQL: { grpc: "FAILED_PRECONDITION", status: 422, title: "The attachment is no PostgreSQL",      help: "Users of apps are in a database of a PostgreSQL service. Attach one." },
  ATTACHMENT_UNHEALTHY:     { grpc: "FAILED_PRECONDITION", status: 422, title: "The attachment is not healthy",         help: "Its service must be Running. GET the service to see what keeps it." },
  CUSTOM_DOMAIN_NOT_VERIFIED: { grpc: "FAILED_PRECONDITION", status: 422, title: "The domain is not verified",          help: "Use the fallback domain, or have a domain of the app verified first." },
  KIND_NOT_AVAILABLE:       { grpc: "FAILED_PRECONDITION", status: 422, title: "Resources of this kind cannot be had here", help: "The problem names the kind. This installation does not have it yet." },
  TEMPLATE_UNAVAILABLE:     { grpc: "FAILED_PRECONDITION", status: 422, title: "The template cannot be launched here",  help: "The detail says what this installation lacks." },
  UPGRADE_BLOCKED:          { grpc: "FAILED_PRECONDITION", status: 422, title: "The upgrade is blocked",                help: "blocked_reasons says what cannot be changed in place. Nothing was changed." },
  PORT_80_RESERVED:         { grpc: "FAILED_PRECONDITION", status: 422, title: "Port 80 is reserved",                   help: "An app that others attach listens on another port: 80 is for HTTPS from outside." },
  INFERENCE_NOT_CONFIGURED: { grpc: "FAILED_PRECONDITION", status: 422, title: "No inference provider is configured",   help: "Configure a provider of the organization first." },
  RESTORE_POINT_UNAVAILABLE: { grpc: "FAILED_PRECONDITION", status: 422, title: "The restore point cannot be had",      help: "Choose a time between earliest and latest that is in none of the gaps." },
  DATA_TYPE_NOT_SUPPORTED:  { grpc: "FAILED_PRECONDITION", status: 422, title: "The destination does not take it",      help: "log_aggregator and log_saas take logs only, prometheus_remote_write metrics only. Choose a data_type of which something fits." },
  TARGET_NOT_ALLOWED:       { grpc: "FAILED_PRECONDITION", status: 422, title: "The target is not allowed",             help: "Name a public HTTP server. An operator can allow more networks with HOLDFAST_ALLOW_EGRESS." },
  BASE_URL_NOT_ALLOWED:     { grpc: "FAILED_PRECONDITION", status: 422, title: "The base URL is not allowed",           help: "Name a public HTTPS server. An operator can allow more networks with HOLDFAST_ALLOW_EGRESS." },
  IDEMPOTENCY_KEY_REUSED:   { grpc: "FAILED_PRECONDITION", status: 422, title: "The Idempotency-Key was used before",   help: "A key belongs to one request. Send another key with another body or query." },
  ENGINE_REFUSED:           { grpc: "FAILED_PRECONDITION", status: 422, title: "The engine refused",                    help: "Correct what the detail names; it has the engine's own words." },
  NOT_SUPPORTED:            { grpc: "FAILED_PRECONDITION", status: 422, title: "This engine does not have it",          help: "The catalog tells what each engine can do." },
  RATE_LIMITED:             { grpc: "RESOURCE_EXHAUSTED",  status: 429, title: "Too many requests",                     help: "Wait for the seconds in Retry-After." },
  INTERNAL:                 { grpc: "INTERNAL",            status: 500, title: "Something went wrong here",             help: "The log has the cause under the instance of the problem. Please report it." },
  NOT_CONFIGURED:           { grpc: "UNIMPLEMENTED",       status: 501, title: "Not set up on this installation",       help: "An operator can set it up; docs/operations.md says how." },
  STORE_UNAVAILABLE:        { grpc: "UNAVAILABLE",         status: 503, title: "The control plane cannot store now",    help: "Running services go on. Try again after the seconds in Retry-After." },
  MACHINE_UNREACHABLE:      { grpc: "UNAVAILABLE",         status: 503, title: "The machine does not answer",           help: "Nothing was changed. Try again; the service's health tells when its machine is back." },
  STORAGE_FULL:             { grpc: "RESOURCE_EXHAUSTED",  status: 507, title: "The service's disk is full",            help: "Nothing was written. Delete data after POST enable-writes, or expand the storage; then send the request again." },
  MODEL_UNREACHABLE:        { grpc: "UNAVAILABLE",         status: 503, title: "The model does not answer",             help: "Nothing was run. Try again; an operator finds the cause in the controller's log." },
} as const satisfies Record<string, Entry>;

export type ErrorKey = keyof typeof CATALOG;

/** One fault of the input. `field` is a path such as `allowed_cidrs[0]`; a query parameter has a null pointer. */
export interface FieldFault {
  readonly field: string;
  readonly pointer: string | null;
  readonly code: string;
  readonly detail: string;
}

/** So many faults are told of one input, in so many bytes of JSON; the first one is told whatever its size. */
export const errorsMax = 20;
const errorsBytesMax = 6 * 1024;
const detailBytesMax = 1_500;

interface Extra {
  readonly errors?: readonly FieldFault[];
  /** Faults that are not among `errors` any more. */
  readonly errorsOmitted?: number;
  /** Further members of the problem document, such as `status` and `operation` of a 409. */
  readonly members?: Readonly<Record<string, unknown>>;
  readonly retryAfterS?: number;
  readonly allow?: readonly string[];
  readonly cause?: unknown;
}

/** The only error that reaches users: an entry of the catalog with a detail for this case. */
export class HoldfastError extends Error {
  readonly key: ErrorKey;
  readonly detail: string;
  /** The first `errorsMax` at most. */
  readonly errors: readonly FieldFault[];
  readonly errorsOmitted: number;
  readonly members: Readonly<Record<string, unknown>>;
  readonly retryAfterS: number | undefined;
  readonly allow: readonly string[] | undefined;

  constructor(key: ErrorKey, detail: string, extra: Extra = {}) {
    super(`${key}: ${detail}`, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.name = "HoldfastError";
    this.key = key;
    this.detail = cut(detail, detailBytesMax);
    const { errors = [], errorsOmitted = 0 } = extra;
    this.errors = firstOf(errors);
    this.errorsOmitted = errorsOmitted + errors.length - this.errors.length;
    this.members = extra.members ?? {};
    this.retryAfterS = extra.retryAfterS ?? (CATALOG[key].status === 503 ? 1 : undefined);
    this.allow = extra.allow;
  }

  /** What the caller gets for anything thrown: itself, or INTERNAL that shows nothing of the cause. */
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

function firstOf(errors: readonly FieldFault[]): readonly FieldFault[] {
  let bytes = 0;
  const end = errors.slice(0, errorsMax).findIndex((fault, index) => {
    bytes += Buffer.byteLength(JSON.stringify(fault));
    return index > 0 && bytes > errorsBytesMax;
  });
  return errors.slice(0, end < 0 ? errorsMax : end);
}

/** Bytes of UTF-8, because that is what an answer is made of. */
function cut(text: string, bytesMax: number): string {
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
