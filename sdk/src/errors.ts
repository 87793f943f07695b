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

  constructor(problem: Problem) {
    super(problem.detail);
    this.name = new.target.name;
    this.problem = problem;
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

/** 429 and 503: try again later. */
export class Unavailable extends ApiError {}

/** No answer came. */
export class ConnectionFailed extends Error {
  override readonly name = "ConnectionFailed";
}

/** The error of an answer by its status. */
export function errorOf(problem: Problem): ApiError {
  switch (problem.status) {
    case 400:
      return new ValidationFailed(problem);
    case 401:
      return new Unauthenticated(problem);
    case 403:
      return new Forbidden(problem);
    case 404:
      return new NotFound(problem);
    case 409:
    case 412:
    case 422:
      return new Conflict(problem);
    case 429:
    case 503:
      return new Unavailable(problem);
    default:
      return new ApiError(problem);
  }
}
