/** One fault of the input, as the API tells it. */
export interface FieldFault {
  readonly field: string;
  readonly pointer: string | null;
  readonly code: string;
  readonly detail: string;
}

/** The body of an error answer, RFC 9457. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: string;
  readonly errors: readonly FieldFault[];
  readonly [member: string]: unknown;
}

/** The API refused, or failed. */
export class ApiError extends Error {
  readonly problem: Problem;
  /** Time after which the API asked to be tried again. */
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

  /** Names the request in the log of the installation. */
  get requestId(): string {
    return this.problem.instance.replace("urn:uuid:", "");
  }
}

/** 400: `fields` has each fault. */
export class ValidationFailed extends ApiError {
  get fields(): readonly FieldFault[] {
    return this.problem.errors;
  }
}

/** 401: no credential, or one that is not good. */
export class Unauthenticated extends ApiError {}

/** 403: the credential lacks a scope. */
export class Forbidden extends ApiError {}

/** 404. */
export class NotFound extends ApiError {}

/** 409, 412 and 422: not in this state. */
export class Conflict extends ApiError {}

/** 503: try again later. */
export class Unavailable extends ApiError {}

/** 429: too many requests of this credential, or failed passwords. */
export class RateLimited extends Unavailable {}

/** No answer came. */
export class ConnectionFailed extends Error {
  override readonly name: string = "ConnectionFailed";
}

/** No answer came in time. */
export class TimedOut extends ConnectionFailed {
  override readonly name = "TimedOut";
}

/** The error of an answer by its status. */
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
