import { HoldfastError } from "@holdfast/common/errors.ts";

/** The body of an error answer, RFC 9457. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: string;
  readonly errors: readonly unknown[];
  readonly [member: string]: unknown;
}

/** Header names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[]>>;

export interface ProblemAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: string;
}

/** Both ways to sign in; sent with every 401. */
const challenges: readonly string[] = ['Basic realm="holdfast", charset="UTF-8"', 'Bearer realm="holdfast"'];

/** Where the page of an error is. */
export function errorPage(baseUrl: string, code: string): string {
  return `${baseUrl}/docs/errors/${code}`;
}

/** What an error tells its caller (RFC 9457). */
export function problemOf(error: HoldfastError, requestId: string, baseUrl: string): Problem {
  return {
    // Members of the error come first: they cannot take the place of the standard ones.
    ...(error.members as Record<string, never>),
    type: errorPage(baseUrl, error.code),
    title: error.entry.title,
    status: error.entry.status,
    detail: error.detail,
    instance: `urn:uuid:${requestId}`,
    code: error.code,
    errors: error.errors,
    ...(error.errorsOmitted > 0 && { errors_omitted: error.errorsOmitted }),
  };
}

/** The error as HTTP shows it. */
export function problemAnswer(error: HoldfastError, requestId: string, baseUrl: string): ProblemAnswer {
  const { status } = error.entry;
  return {
    status,
    headers: {
      "content-type": "application/problem+json",
      ...(error.retryAfterS === undefined ? {} : { "retry-after": String(Math.ceil(error.retryAfterS)) }),
      ...(error.allow === undefined ? {} : { allow: error.allow.join(", ") }),
      ...(status === 401 ? { "www-authenticate": challenges } : {}),
    },
    body: JSON.stringify(problemOf(error, requestId, baseUrl)),
  };
}
