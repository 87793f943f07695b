import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { type Clock, systemClock } from "@holdfast/common/clock.ts";
import { createConnectionPools } from "./connection-pools.ts";
import type { EgressResponse } from "./egress-response.ts";
import { EgressFailure } from "./egress-failure.ts";
import { Exchange } from "./exchange.ts";
import {
  type GuardDeps,
  openGuardedSocket,
  type SocketTarget,
  type TlsOptions,
  vettedAddresses,
} from "./guarded-connector.ts";
import { type ParsedTarget, parseTarget, type Target } from "./target.ts";

/** A request with a complete body; the base of all requests. */
export interface EgressPost {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  /** Time in milliseconds for the complete request, including the response body. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  /**
   * Organization of the request: connections are not shared between organizations. Absent for requests of the platform.
   */
  readonly organizationId?: string | undefined;
  readonly tls?: TlsOptions | undefined;
  /**
   * Addresses that the platform itself has for the target, for a caller that vouches for it: the name is not resolved,
   * and the policy does not judge them.
   */
  readonly addresses?: readonly string[] | undefined;
}

export interface EgressRequest extends Omit<EgressPost, "body"> {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The body; a stream is sent at the speed of the target. */
  readonly body?: string | Uint8Array | Readable | undefined;
  /** Time in milliseconds for which the target may send nothing, before and after the head; 60 s by default. */
  readonly silenceMs?: number | undefined;
  /** Maximum size of the response body; 1 MiB by default. */
  readonly maxBytes?: number | undefined;
}

/**
 * The only client for connections to configured URLs. It resolves names itself, refuses addresses that the policy does
 * not allow, connects to exactly the checked addresses, and bounds time and bytes of each request.
 */
export interface EgressClient {
  /**
   * Sends a POST and resolves with the status and Retry-After as soon as they arrive. Redirects are not followed; the
   * response body is discarded. Throws EgressFailure, with `timeout` after `deadlineMs`.
   */
  post(url: string, request: EgressPost): Promise<Pick<EgressResponse, "status" | "retryAfterMs">>;
  /**
   * Sends a request, streaming its body if it is a stream, and resolves with the head of the response. Redirects are
   * responses. The body must be read or dropped. Throws EgressFailure, or the signal's reason.
   */
  request(url: string, request: EgressRequest): Promise<EgressResponse>;
  /** Opens a raw connection for other protocols, with the same address policy. Throws EgressFailure. */
  connect(target: SocketTarget): Promise<Socket>;
  /**
   * Throws EgressFailure `not allowed` if the target resolves to a refused address. A name that does not resolve is
   * accepted, since it may resolve later.
   */
  check(target: Pick<Target, "host" | "port">, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

const checkTimeoutMs = 3_000;
/**
 * Timeout of idle connections. It exceeds the timeout of most servers and load balancers, so that they close idle
 * connections; a server's Keep-Alive hint applies if it is shorter.
 */
const idleTimeoutMs = 65_000;
/** A POST is not retried automatically, so its connection is not reused close to a server's idle timeout. */
const idleTimeoutAfterPostMs = 4_000;
const defaultMaxBytes = 1 << 20;
const defaultSilenceMs = 60_000;
const maxCachedTargets = 1_000;

type Deps = GuardDeps & { readonly clock?: Pick<Clock, "now" | "monotonicMs"> };

export function createEgressClient(deps: Deps): EgressClient {
  const clock = deps.clock ?? systemClock;
  const pools = createConnectionPools(deps, () => clock.monotonicMs());
  const deadlines = createRequestDeadlines();

  /** Cache of parsed URLs: callers use few URLs repeatedly. */
  const targets = new Map<string, ParsedTarget>();

  function targetOf(url: string): ParsedTarget {
    const cached = targets.get(url);
    if (cached !== undefined) return cached;
    const parsed = parseTarget(url);
    if (targets.size >= maxCachedTargets) targets.clear();
    targets.set(url, parsed);
    return parsed;
  }

  async function send(url: string, request: EgressRequest, idleMs: number): Promise<EgressResponse> {
    const {
      method,
      headers,
      body,
      deadlineMs,
      signal,
      tls,
      addresses,
      organizationId = "",
      maxBytes = defaultMaxBytes,
      silenceMs = defaultSilenceMs,
    } = request;
    const parsed = targetOf(url);
    if (!parsed.ok) {
      if (isStream(body)) body.destroy();
      throw new EgressFailure("not allowed", "The target is not allowed.");
    }
    signal.throwIfAborted();
    const { origin, pathname, search } = parsed.target.url;
    const exchange = new Exchange(body, {
      maxBytes: maxBytes,
      now: clock.now,
      failureOf(error) {
        if (deadline.isExpired()) return new EgressFailure("timeout", `No response within ${deadlineMs / 1_000} s.`);
        return signal.aborted ? signal.reason : EgressFailure.from(error);
      },
      onEnd: () => deadline.release(),
    });
    const deadline = deadlines.start(signal, deadlineMs, () => exchange.abort(new Error("the request was aborted")));
    const path = `${pathname}${search}`;
    const silence = { headersTimeout: silenceMs, bodyTimeout: silenceMs };
    pools
      .of({ organizationId, tls, addresses, idleMs })
      .dispatch({ origin, path, method, headers, body: body ?? null, ...silence }, exchange);
    return exchange.head;
  }

  return {
    async post(url, request) {
      const response = await send(url, { ...request, method: "POST" }, idleTimeoutAfterPostMs);
      // Only the head is returned; the body is read only so that the connection can be reused.
      await response.drop();
      return { status: response.status, retryAfterMs: response.retryAfterMs };
    },
    request: (url, request) => send(url, request, idleTimeoutMs),
    connect: (target) => openGuardedSocket(target, deps),
    async check({ host, port }, signal) {
      try {
        await vettedAddresses(host, port, deps, AbortSignal.any([signal, AbortSignal.timeout(checkTimeoutMs)]));
      } catch (error) {
        if (error instanceof EgressFailure && error.kind === "not allowed") throw error;
        signal.throwIfAborted();
      }
    },
    close: () => pools.destroy(),
  };
}

function isStream(body: EgressRequest["body"]): body is Readable {
  return typeof body === "object" && "destroy" in body;
}

/** Observes requests and connections: type, outcome (`ok` or the kind of failure), and seconds. */
type EgressObserver = (what: "post" | "request" | "connect", outcome: string, seconds: number) => void;

/** Adds an observer to a client. The time of a request ends at the head of its response. */
export function instrumentedClient(client: EgressClient, observe: EgressObserver): EgressClient {
  async function observed<T>(what: Parameters<EgressObserver>[0], work: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    const report = (outcome: string) => observe(what, outcome, (performance.now() - startedMs) / 1_000);
    try {
      const result = await work();
      report("ok");
      return result;
    } catch (error) {
      report(error instanceof EgressFailure ? error.kind.replaceAll(" ", "_") : "ended");
      throw error;
    }
  }
  return {
    post: (...args) => observed("post", () => client.post(...args)),
    request: (...args) => observed("request", () => client.request(...args)),
    connect: (...args) => observed("connect", () => client.connect(...args)),
    check: (...args) => client.check(...args),
    close: () => client.close(),
  };
}

/** The deadline of one request. */
export interface RequestDeadline {
  /** True if the deadline passed. */
  isExpired(): boolean;
  /** Releases the timer and listener; call it when the request ends. */
  release(): void;
}

export interface RequestDeadlines {
  /** Calls `end` at the deadline or when the signal aborts. */
  start(signal: AbortSignal, deadlineMs: number, end: () => void): RequestDeadline;
}

function createRequestDeadlines(): RequestDeadlines {
  /** Requests by signal. One listener serves all of them, since each additional listener makes a signal slower. */
  const bySignal = new WeakMap<AbortSignal, Set<() => void>>();

  function requestsOf(signal: AbortSignal): Set<() => void> {
    const existing = bySignal.get(signal);
    if (existing !== undefined) return existing;
    const all = new Set<() => void>();
    bySignal.set(signal, all);
    signal.addEventListener("abort", () => all.forEach((end) => end()), { once: true });
    return all;
  }

  return {
    start(signal, deadlineMs, end) {
      const all = requestsOf(signal);
      all.add(end);
      let expired = false;
      const timer = setTimeout(() => {
        expired = true;
        end();
      }, deadlineMs);
      return {
        isExpired: () => expired,
        release() {
          clearTimeout(timer);
          all.delete(end);
        },
      };
    },
  };
}
