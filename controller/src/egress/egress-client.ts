import { Agent } from "undici";
import { EgressFailure } from "./egress-failure.ts";
import { createGuardedConnector, type GuardDeps, vettedAddresses } from "./guarded-connector.ts";
import { parseTarget, type Target } from "./target.ts";

/** HTTP to where users say. Everything that a user's URL makes the platform call goes through here. */
export interface EgressClient {
  /**
   * Sends the body and resolves with the status as soon as it is there; redirects are not followed, what else comes is read
   * to a bound and dropped. Throws EgressFailure; `timeout` when `deadlineMs` in all is over.
   */
  post(url: string, request: EgressRequest): Promise<{ readonly status: number }>;
  /** Throws EgressFailure `not allowed` when the target is known to lead where it may not. A name that does not resolve may come to do so. */
  check(target: Target, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

export interface EgressRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

const bodyBytesMax = 64 << 10;
const headerBytesMax = 16 << 10;
const checkMs = 3_000;

export function createEgressClient(deps: GuardDeps): EgressClient {
  const agent = new Agent({
    // The deadline of the whole request is what ends it; these only see to it that nothing outlives it.
    connect: createGuardedConnector(deps, 10_000),
    headersTimeout: 60_000,
    bodyTimeout: 60_000,
    keepAliveTimeout: 4_000,
    keepAliveMaxTimeout: 4_000,
    maxHeaderSize: headerBytesMax,
    pipelining: 1,
    allowH2: false,
  });

  /** Requests by the signal that ends them: one listener for all of them, since each further one makes a signal slower. */
  const endings = new WeakMap<AbortSignal, Set<AbortController>>();

  function endWith(signal: AbortSignal, ending: AbortController): () => void {
    const all = endings.get(signal) ?? new Set();
    if (!endings.has(signal)) {
      endings.set(signal, all);
      signal.addEventListener("abort", () => all.forEach((each) => each.abort(signal.reason)), { once: true });
    }
    all.add(ending);
    return () => void all.delete(ending);
  }

  return {
    async post(url, { headers, body, deadlineMs, signal }) {
      const parsed = parseTarget(url);
      if (!parsed.ok) throw new EgressFailure("not allowed", "The target is not allowed.");
      signal.throwIfAborted();
      const { origin, pathname, search } = parsed.target.url;
      // One signal of its own for each request: composed ones cost more than the request itself.
      const ending = new AbortController();
      const release = endWith(signal, ending);
      let late = false;
      const deadline = setTimeout(() => {
        late = true;
        ending.abort();
      }, deadlineMs);
      try {
        const answer = await agent.request({
          origin,
          path: `${pathname}${search}`,
          method: "POST",
          headers,
          body,
          signal: ending.signal,
        });
        // The status is the answer. What follows is read only so that the connection can serve again.
        await answer.body.dump({ limit: bodyBytesMax }).catch(() => answer.body.destroy());
        return { status: answer.statusCode };
      } catch (error) {
        if (late) throw new EgressFailure("timeout", `No answer within ${deadlineMs / 1_000} s.`);
        signal.throwIfAborted();
        throw EgressFailure.from(error);
      } finally {
        clearTimeout(deadline);
        release();
      }
    },
    async check({ host, port }, signal) {
      try {
        await vettedAddresses(host, port, deps, AbortSignal.any([signal, AbortSignal.timeout(checkMs)]));
      } catch (error) {
        if (error instanceof EgressFailure && error.kind === "not allowed") throw error;
        signal.throwIfAborted();
      }
    },
    close: () => agent.destroy(),
  };
}
