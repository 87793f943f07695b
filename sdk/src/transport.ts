import { ConnectionFailed, errorOf, NotFound, type Problem, TimedOut } from "./errors.ts";
import { defaultRetries, isOutage, pause, pauseBeforeRetry, retryAfterMsOf } from "./retry.ts";

/**
 * The credentials of a caller: a user name or API key id with its secret, a token, or the CSRF token of the session
 * whose cookie the browser sends.
 */
export type Credentials =
  | { readonly kind: "basic"; readonly name: string; readonly secret: string }
  | { readonly kind: "bearer"; readonly token: string }
  | { readonly kind: "session"; readonly csrfToken: string };

/** An installation, credentials and defaults of its client. */
export interface TransportOptions {
  /** Base URL of the API, such as "https://data.example.com:8443". */
  readonly baseUrl: string;
  /** Absent for public methods, which need none. */
  readonly credentials?: Credentials | undefined;
  /** Id of the organization to act in; required for a user of several organizations. */
  readonly organization?: string | undefined;
  /** Replaces the global fetch, for example to trust another certificate authority. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Timeout of one attempt; 30 s by default. */
  readonly timeoutMs?: number | undefined;
  /** Number of retries; 3 by default, 0 for none. */
  readonly retries?: number | undefined;
  /**
   * Time for which requests are retried while the API does not respond, such as during its restart; 0 by default. It
   * applies after the client's first response, so that an unreachable API is reported immediately, and not with 0
   * retries.
   */
  readonly outageMs?: number | undefined;
  /** Aborts all requests of the client. */
  readonly signal?: AbortSignal | undefined;
  /** Parses the JSON of successful responses; JSON.parse by default. */
  readonly parse?: ((text: string) => unknown) | undefined;
}

/** Options of one call. */
export interface CallOptions {
  /** Aborts the call; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Timeout of one attempt. */
  readonly timeoutMs?: number | undefined;
  /** Idempotency-Key of a POST that outlives this process; the same key and body get the same response for 24 hours. */
  readonly idempotencyKey?: string | undefined;
}

type QueryValue = string | number | boolean;

/** Query, body and headers of a request. */
export interface RequestOptions extends CallOptions {
  /** A parameter with several values is repeated. */
  readonly query?: Readonly<Record<string, QueryValue | readonly QueryValue[] | undefined>> | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** True for a change that must not be repeated: it is sent once. */
  readonly single?: boolean;
  /** True for a DELETE without a response body: when a retry gets 404, the first attempt was successful. */
  readonly absentIsSuccess?: boolean;
}

/** HTTP methods of the API. */
export type HttpVerb = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Sends requests, retries where that is safe, and throws an ApiError for an error response. */
export interface Transport {
  /** Aborts all requests. */
  readonly signal: AbortSignal | undefined;
  request<T>(verb: HttpVerb, path: string, options?: RequestOptions): Promise<T>;
  /** Sends a request and returns its response as a stream, without retries or timeout. */
  open(verb: HttpVerb, path: string, options?: RequestOptions): Promise<Response>;
}

/**
 * Requests are retried unless `single` is set: reads, PATCH and DELETE are idempotent, and each POST gets an
 * Idempotency-Key. Each read has the newest Holdfast-Revision of this client's changes, so that a client reads its own
 * writes from any controller.
 */
export function createTransport(options: TransportOptions): Transport {
  const { credentials, organization, signal: ending } = options;
  const baseUrl = new URL(options.baseUrl).href.replace(/\/+$/, "");
  // A wrapper, because browsers refuse to call fetch as a method of another object.
  const send = options.fetch ?? ((input: URL, init: RequestInit) => globalThis.fetch(input, init));
  const policy = { ...defaultRetries, retries: options.retries ?? defaultRetries.retries };
  const outageMs = options.outageMs ?? 0;
  const parse = options.parse ?? JSON.parse;
  let revision = 0n;
  let hasResponded = false;

  async function open(
    verb: HttpVerb,
    path: string,
    { query, body, headers, signal: callSignal }: RequestOptions = {},
  ): Promise<Response> {
    const signal = anyOf(callSignal, ending);
    const url = new URL(baseUrl + path);
    for (const [name, value] of Object.entries(query ?? {})) {
      for (const each of Array.isArray(value) ? value : [value]) {
        if (each !== undefined) url.searchParams.append(name, String(each));
      }
    }
    const init: RequestInit = {
      method: verb,
      headers: {
        ...(credentials !== undefined && headersOf(credentials)),
        ...(organization !== undefined && { "holdfast-organization": organization }),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(verb === "GET" && revision > 0n && { "holdfast-revision": String(revision) }),
        ...headers,
      },
      redirect: "error",
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    };
    const response = await send(url, init).catch((cause: unknown) => {
      if (signal?.aborted === true) throw signal.reason;
      throw new ConnectionFailed(`${baseUrl} does not respond: ${reasonOf(cause)}`, { cause });
    });
    const newest = response.headers.get("holdfast-revision");
    if (newest !== null && BigInt(newest) > revision) revision = BigInt(newest);
    hasResponded ||= response.ok;
    if (response.ok) return response;
    const retryAfterMs = retryAfterMsOf(response.headers.get("retry-after"), Date.now());
    const error = errorOf(await problemOf(response), retryAfterMs);
    hasResponded ||= !isOutage(error);
    throw error;
  }

  async function once<T>(verb: HttpVerb, path: string, all: RequestOptions): Promise<T> {
    const timeoutMs = all.timeoutMs ?? options.timeoutMs ?? 30_000;
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = anyOf(timeout, all.signal);
    try {
      const response = await open(verb, path, { ...all, signal });
      if (response.status === 204) return undefined as T;
      const type = response.headers.get("content-type") ?? "";
      // A text response becomes an object with the member `text`.
      const isText = type.startsWith("text/plain") || type.startsWith("application/schema+json");
      const content = response.text().then((text) => (isText ? { text } : parse(text)));
      return (await content.catch((cause: unknown) => {
        throw new ConnectionFailed(`${baseUrl} sent an incomplete response: ${reasonOf(cause)}`, { cause });
      })) as T;
    } catch (error) {
      if (all.signal?.aborted === true) throw all.signal.reason;
      if (ending?.aborted === true) throw ending.reason;
      if (timeout.aborted) throw new TimedOut(`${baseUrl} did not respond within ${timeoutMs} ms`, { cause: error });
      throw error;
    }
  }

  async function request<T>(verb: HttpVerb, path: string, call: RequestOptions = {}): Promise<T> {
    const key = verb === "POST" ? { "idempotency-key": call.idempotencyKey ?? globalThis.crypto.randomUUID() } : {};
    const all = { ...call, headers: { ...key, ...call.headers } };
    const signal = anyOf(call.signal, ending);
    let wasUnanswered = false;
    let outageSince: number | undefined;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await once<T>(verb, path, all);
      } catch (error) {
        if (wasUnanswered && call.absentIsSuccess === true && error instanceof NotFound) return undefined as T;
        const now = performance.now();
        outageSince = isOutage(error) ? (outageSince ?? now) : undefined;
        const isTolerated = hasResponded && outageSince !== undefined && now - outageSince < outageMs;
        const counted = isTolerated ? Math.min(attempt, policy.retries) : attempt;
        const pauseMs = pauseBeforeRetry(error, counted, policy, Math.random());
        if (pauseMs === undefined || call.single === true || signal?.aborted === true) throw error;
        wasUnanswered ||= error instanceof ConnectionFailed;
        await pause(pauseMs, signal);
      }
    }
  }

  return { signal: ending, open, request };
}

/**
 * Builds a path from parts and escapes each. Throws a TypeError for "", "." and "..", because the URL parser would
 * resolve them to another path.
 */
export function pathOf(...parts: readonly string[]): string {
  return parts
    .map((part) => {
      if (["", ".", ".."].includes(part)) throw new TypeError(`"${part}" is not a name or id`);
      return `/${encodeURIComponent(part)}`;
    })
    .join("");
}

/** A signal that aborts when one of the two signals aborts. */
export function anyOf(first: AbortSignal | undefined, second: AbortSignal | undefined): AbortSignal | undefined {
  return first === undefined || second === undefined ? (first ?? second) : AbortSignal.any([first, second]);
}

function headersOf(credentials: Credentials): Record<string, string> {
  if (credentials.kind === "session") return { "holdfast-csrf": credentials.csrfToken };
  if (credentials.kind === "bearer") return { authorization: `Bearer ${credentials.token}` };
  const bytes = new TextEncoder().encode(`${credentials.name}:${credentials.secret}`);
  return { authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

/** The problem document of an error response; a substitute if a proxy sent a response without one. */
async function problemOf(response: Response): Promise<Problem> {
  const unreadable = {
    type: "about:blank",
    title: response.statusText,
    status: response.status,
    detail: `HTTP ${response.status}`,
    instance: "",
    code: "unknown",
    errors: [],
  };
  const body = await bodyOf(response);
  // Connect has its own error format with code and message, and status 400 for failed preconditions.
  const detail = body.detail ?? body.message ?? unreadable.detail;
  const status = body.code === "failed_precondition" ? 409 : response.status;
  return { ...unreadable, ...body, detail, status };
}

async function bodyOf(response: Response): Promise<Partial<Problem> & { message?: string }> {
  try {
    const body: unknown = JSON.parse(await response.text());
    return typeof body === "object" && body !== null ? body : {};
  } catch {
    return {};
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

/** The base of classes whose methods send requests through a transport. */
export abstract class ApiMethods {
  protected readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
  }
}
