import { HoldfastError } from "@holdfast/common/errors.ts";

/** A problem document: the body of an error response (RFC 9457). */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: string;
  /** Advice for the caller, the same as on the documentation page of the error; null if there is none. */
  readonly help: string | null;
  readonly errors: readonly unknown[];
  readonly [member: string]: unknown;
}

/** Header names in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[]>>;

export interface ProblemResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
}

const bearer = 'Bearer realm="holdfast"';

/**
 * WWW-Authenticate challenges of a 401 response. After a Basic challenge to a script's request, a browser shows its
 * password dialog in front of the page, so scripts get only the Bearer challenge.
 */
function challengesFor(fetchDestination: string | undefined): readonly string[] {
  return fetchDestination === "empty" ? [bearer] : ['Basic realm="holdfast", charset="UTF-8"', bearer];
}

/** URL of the documentation page of an error. */
export function errorPage(baseUrl: string, code: string): string {
  return `${baseUrl}/docs/errors/${code}`;
}

/** The problem document of an error. */
export function problemOf(error: HoldfastError, requestId: string, baseUrl: string): Problem {
  return {
    // Members of the error come first, so that they cannot replace the standard ones.
    ...(error.members as Record<string, never>),
    type: errorPage(baseUrl, error.code),
    title: error.entry.title,
    status: error.entry.status,
    detail: error.detail,
    instance: `urn:uuid:${requestId}`,
    code: error.code,
    help: error.entry.help || null,
    errors: error.errors,
    ...(error.errorsOmitted > 0 && { errors_omitted: error.errorsOmitted }),
  };
}

/** The HTTP response of an error. `fetchDestination` is the header Sec-Fetch-Dest of the request. */
export function problemResponse(
  error: HoldfastError,
  {
    requestId,
    baseUrl,
    fetchDestination,
  }: { requestId: string; baseUrl: string; fetchDestination: string | undefined },
): ProblemResponse {
  const { status } = error.entry;
  return {
    status,
    headers: {
      "content-type": "application/problem+json",
      ...(error.retryAfterS === undefined ? {} : { "retry-after": String(Math.ceil(error.retryAfterS)) }),
      ...(error.allow === undefined ? {} : { allow: error.allow.join(", ") }),
      ...(status === 401 ? { "www-authenticate": challengesFor(fetchDestination) } : {}),
    },
    body: JSON.stringify(problemOf(error, requestId, baseUrl)),
  };
}
