import { ConnectionFailed, errorOf, NotFound, TimedOut } from "./errors.ts";
import { problemOf, retryAfterMsOf } from "./problem.ts";
import { pause, pauseBeforeRetry, usualRetries } from "./retry.ts";

/** How a caller shows who it is: a user name or key id with its secret, or a token. */
export type Credentials =
  | { readonly kind: "basic"; readonly name: string; readonly secret: string }
  | { readonly kind: "bearer"; readonly token: string };

/** An installation and the credentials for it. */
export interface TransportOptions {
  /** Such as "https://data.example.com:8443". */
  readonly baseUrl: string;
  /** Left out for the few methods that need none. */
  readonly credentials?: Credentials | undefined;
  /** Id of the organization to act in; a person of several must name one. */
  readonly organization?: string | undefined;
  /** Stands in for the global fetch, for one with an authority of its own. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Of one attempt, 30 s when left out. */
  readonly timeoutMs?: number | undefined;
  /** Attempts after the first, 3 when left out; 0 sends everything once. */
  readonly retries?: number | undefined;
  /** Ends every request of this client. */
  readonly signal?: AbortSignal | undefined;
}

/** What a caller may say about one call. */
export interface CallOptions {
  /** Ends the call, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Of one attempt. */
  readonly timeoutMs?: number | undefined;
  /** For a POST that goes on after this process: the same key with the same body gives the same answer for 24 hours. */
  readonly idempotencyKey?: string | undefined;
}

type QueryValue = string | number | boolean;

/** What one request is made of beside its path. */
export interface RequestOptions extends CallOptions {
  /** A parameter with several values is there several times. */
  readonly query?: Readonly<Record<string, QueryValue | readonly QueryValue[] | undefined>> | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** True for a change that no key protects: it is sent once. */
  readonly single?: boolean;
  /** True for a DELETE that answers nothing: sent again, it has worked when there is nothing left to find. */
  readonly goneIsDone?: boolean;
}

/** The methods of HTTP that the API uses. */
export type HttpVerb = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Sends requests, again where that is safe, and turns error answers into errors. */
export interface Transport {
  /** Ends every request. */
  readonly signal: AbortSignal | undefined;
  request<T>(verb: HttpVerb, path: string, options?: RequestOptions): Promise<T>;
  /** The answer as it comes, for streams. Not tried again, and with no time-out of its own. */
  open(verb: HttpVerb, path: string, options?: RequestOptions): Promise<Response>;
}

/**
 * Requests are safe to repeat unless they say otherwise: reads, PATCH and DELETE by nature, POST by an Idempotency-Key
 * made here. Each read carries the newest revision that a change answered, so that a client reads its own writes from
 * any controller.
 */
export function createTransport(options: TransportOptions): Transport {
  const { credentials, organization, signal: ending } = options;
  const baseUrl = new URL(options.baseUrl).href.replace(/\/+$/, "");
  // Called as a function of its own: browsers refuse their fetch as anybody's method.
  const send = options.fetch ?? ((input: URL, init: RequestInit) => globalThis.fetch(input, init));
  const policy = { ...usualRetries, retries: options.retries ?? usualRetries.retries };
  let revision = 0n;

  async function open(
    verb: HttpVerb,
    path: string,
    { query, body, headers, signal: own }: RequestOptions = {},
  ): Promise<Response> {
    const signal = anyOf(own, ending);
    const url = new URL(baseUrl + path);
    for (const [name, value] of Object.entries(query ?? {})) {
      for (const each of Array.isArray(value) ? value : [value]) {
        if (each !== undefined) url.searchParams.append(name, String(each));
      }
    }
    const init: RequestInit = {
      method: verb,
      headers: {
        ...(credentials !== undefined && { authorization: authorizationOf(credentials) }),
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
      throw new ConnectionFailed(`${baseUrl} does not answer: ${reasonOf(cause)}`, { cause });
    });
    const seen = response.headers.get("holdfast-revision");
    if (seen !== null && BigInt(seen) > revision) revision = BigInt(seen);
    if (response.ok) return response;
    const retryAfterMs = retryAfterMsOf(response.headers.get("retry-after"), Date.now());
    throw errorOf(await problemOf(response), retryAfterMs);
  }

  async function once<T>(verb: HttpVerb, path: string, all: RequestOptions): Promise<T> {
    const timeoutMs = all.timeoutMs ?? options.timeoutMs ?? 30_000;
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = anyOf(timeout, all.signal);
    try {
      const response = await open(verb, path, { ...all, signal });
      if (response.status === 204) return undefined as T;
      const type = response.headers.get("content-type") ?? "";
      // An answer in plain text is given to callers as a message with that text.
      const isText = type.startsWith("text/plain") || type.startsWith("application/schema+json");
      const answer = isText ? response.text().then((text) => ({ text })) : response.json();
      return (await answer.catch((cause: unknown) => {
        throw new ConnectionFailed(`${baseUrl} gave no whole answer: ${reasonOf(cause)}`, { cause });
      })) as T;
    } catch (error) {
      if (all.signal?.aborted === true) throw all.signal.reason;
      if (ending?.aborted === true) throw ending.reason;
      if (timeout.aborted) throw new TimedOut(`${baseUrl} gave no answer within ${timeoutMs} ms`, { cause: error });
      throw error;
    }
  }

  async function request<T>(verb: HttpVerb, path: string, asked: RequestOptions = {}): Promise<T> {
    const key = verb === "POST" ? { "idempotency-key": asked.idempotencyKey ?? globalThis.crypto.randomUUID() } : {};
    const all = { ...asked, headers: { ...key, ...asked.headers } };
    const signal = anyOf(asked.signal, ending);
    let unheard = false;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await once<T>(verb, path, all);
      } catch (error) {
        if (unheard && asked.goneIsDone === true && error instanceof NotFound) return undefined as T;
        const pauseMs = pauseBeforeRetry(error, attempt, policy, Math.random());
        if (pauseMs === undefined || asked.single === true || signal?.aborted === true) throw error;
        unheard ||= error instanceof ConnectionFailed;
        await pause(pauseMs, signal);
      }
    }
  }

  return { signal: ending, open, request };
}

/**
 * The path of these parts below the root, each escaped. Throws a TypeError for a part that would lead to another path.
 */
export function pathOf(...parts: readonly string[]): string {
  return parts
    .map((part) => {
      if (["", ".", ".."].includes(part)) throw new TypeError(`"${part}" is no name or id`);
      return `/${encodeURIComponent(part)}`;
    })
    .join("");
}

/** A signal that aborts as soon as one of them does. */
export function anyOf(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one === undefined || other === undefined ? (one ?? other) : AbortSignal.any([one, other]);
}

function authorizationOf(credentials: Credentials): string {
  if (credentials.kind === "bearer") return `Bearer ${credentials.token}`;
  const bytes = new TextEncoder().encode(`${credentials.name}:${credentials.secret}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
