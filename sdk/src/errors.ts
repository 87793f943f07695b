/** One fault of the input. */
export interface FieldFault {
  readonly field: string;
  readonly pointer: string | null;
  readonly code: string;
  readonly detail: string;
}

/** A problem document, the body of an error response (RFC 9457). */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: string;
  /** Advice for the caller; absent in responses of earlier releases. */
  readonly help?: string | null;
  readonly errors: readonly FieldFault[];
  readonly [member: string]: unknown;
}

/** An error response of the API. */
export class ApiError extends Error {
  readonly problem: Problem;
  /** Time of the Retry-After header. */
  readonly retryAfterMs: number | undefined;

  constructor(problem: Problem, retryAfterMs?: number) {
    super(problem.detail);
    this.name = new.target.name;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }

  get status(): number {
    return this.problem.status;
  }

  get code(): string {
    return this.problem.code;
  }

  /** Advice for the caller; undefined where there is none. */
  get help(): string | undefined {
    return this.problem.help ?? undefined;
  }

  /** Id of the request in the installation's log. */
  get requestId(): string {
    return this.problem.instance.replace("urn:uuid:", "");
  }
}

/** 400: the input is invalid; `fields` has the faults. */
export class ValidationFailed extends ApiError {
  get fields(): readonly FieldFault[] {
    return this.problem.errors;
  }
}

/** 401: no credential, or an invalid one. */
export class Unauthenticated extends ApiError {}

/** 403: the credential lacks a scope. */
export class Forbidden extends ApiError {}

/** 404: no object has this id or name. */
export class NotFound extends ApiError {}

/** 409, 412 and 422: not possible in the object's state. */
export class Conflict extends ApiError {}

/** 503: try again later. */
export class Unavailable extends ApiError {}

/** 429: too many requests or failed passwords. */
export class RateLimited extends Unavailable {}

/** The request got no response. */
export class ConnectionFailed extends Error {
  override readonly name: string = "ConnectionFailed";
}

/** The request got no response in time. */
export class TimedOut extends ConnectionFailed {
  override readonly name = "TimedOut";
}

/** The error of a problem document; its class follows from the status. */
export function errorOf(problem: Problem, retryAfterMs?: number): ApiError {
  const Kind = kinds.get(problem.status) ?? ApiError;
  return new Kind(problem, retryAfterMs);
}

const kinds = new Map<number, typeof ApiError>([
  [400, ValidationFailed],
  [401, Unauthenticated],
  [403, Forbidden],
  [404, NotFound],
  [409, Conflict],
  [412, Conflict],
  [422, Conflict],
  [429, RateLimited],
  [503, Unavailable],
]);
