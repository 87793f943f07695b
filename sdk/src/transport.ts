import { ConnectionFailed, errorOf, type Problem } from "./errors.ts";

/** How a caller shows who it is. */
export type Credentials =
  | { readonly kind: "basic"; readonly name: string; readonly secret: string }
  | { readonly kind: "bearer"; readonly token: string };

export interface TransportOptions {
  readonly baseUrl: string;
  readonly credentials: Credentials;
  /** Id of the organization to act in; a person of several must name one. */
  readonly organization?: string;
  readonly fetch?: typeof globalThis.fetch;
  /** Of one attempt. */
  readonly timeoutMs?: number;
  /** Ends every request of this client. */
  readonly signal?: AbortSignal;
}

export interface RequestOptions {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** True for a change that no key protects: it is sent once. */
  readonly single?: boolean;
}

/** Sends requests, again where that is safe, and turns error answers into errors. */
export interface Transport {
  request<T>(verb: string, path: string, options?: RequestOptions): Promise<T>;
  /** The answer as it comes, for streams. Not tried again. */
  open(verb: string, path: string, options?: RequestOptions): Promise<Response>;
}

const attempts = 4;
const firstPauseMs = 200;

/**
 * Requests are safe to send again unless they say otherwise: reads, PATCH and DELETE by nature, POST by an Idempotency-Key made here. The
 * newest revision that a change answered goes with each read, so that one reads what one wrote on any replica.
 */
export function createTransport({
  baseUrl,
  credentials,
  organization,
  fetch = globalThis.fetch,
  timeoutMs = 30_000,
  signal: ending,
}: TransportOptions): Transport {
  const authorization = authorizationOf(credentials);
  let revision = 0n;

  async function open(
    verb: string,
    path: string,
    { query, body, headers, signal: own }: RequestOptions = {},
  ): Promise<Response> {
    const signal = own === undefined || ending === undefined ? (own ?? ending) : AbortSignal.any([own, ending]);
    const url = new URL(baseUrl + path);
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const response = await fetch(url, {
      method: verb,
      headers: {
        authorization,
        ...(organization === undefined ? {} : { "holdfast-organization": organization }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(verb === "GET" && revision > 0n ? { "holdfast-revision": String(revision) } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    }).catch((cause: unknown) => {
      if (signal?.aborted === true) throw signal.reason;
      throw new ConnectionFailed(`${baseUrl} does not answer: ${reasonOf(cause)}`, { cause });
    });
    const seen = response.headers.get("holdfast-revision");
    if (seen !== null && BigInt(seen) > revision) revision = BigInt(seen);
    if (response.ok) return response;
    throw errorOf(await problemOf(response));
  }

  async function once<T>(verb: string, path: string, options: RequestOptions): Promise<T> {
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = options.signal === undefined ? timeout : AbortSignal.any([timeout, options.signal]);
    try {
      const response = await open(verb, path, { ...options, signal });
      return (response.status === 204 ? undefined : await response.json()) as T;
    } catch (error) {
      if (timeout.aborted && error === timeout.reason)
        throw new ConnectionFailed(`${baseUrl} gave no answer within ${timeoutMs} ms`);
      throw error;
    }
  }

  return {
    open,
    async request<T>(verb: string, path: string, options: RequestOptions = {}): Promise<T> {
      const key = verb === "POST" ? { "idempotency-key": globalThis.crypto.randomUUID() } : {};
      const all = { ...options, headers: { ...key, ...options.headers } };
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await once<T>(verb, path, all);
        } catch (error) {
          if (attempt === attempts || options.single === true || !mayRetry(error) || options.signal?.aborted === true)
            throw error;
          await pause(firstPauseMs * 2 ** (attempt - 1) * (0.5 + Math.random()), options.signal ?? ending);
        }
      }
    },
  };
}

/** Waits; rejects with the signal's reason. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal?.aborted === true) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

function mayRetry(error: unknown): boolean {
  if (error instanceof ConnectionFailed) return true;
  return error instanceof Error && "status" in error && (error.status === 503 || error.status === 429);
}

function authorizationOf(credentials: Credentials): string {
  if (credentials.kind === "bearer") return `Bearer ${credentials.token}`;
  const bytes = new TextEncoder().encode(`${credentials.name}:${credentials.secret}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text();
  const unreadable = {
    type: "about:blank",
    title: response.statusText,
    status: response.status,
    detail: `HTTP ${response.status}`,
    instance: "",
    code: "unknown",
    errors: [],
  };
  if (response.headers.get("content-type")?.includes("json") !== true) return unreadable;
  const body = JSON.parse(text) as Partial<Problem> & { message?: string };
  // Connect has an error format of its own, code and message, and answers 400 for what is a conflict here.
  const detail = body.detail ?? body.message ?? unreadable.detail;
  const status = body.code === "failed_precondition" ? 409 : response.status;
  return { ...unreadable, ...body, detail, status };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
