import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { type Clock, systemClock } from "@holdfast/common/clock.ts";
import { createConnectionPools } from "./connection-pools.ts";
import type { EgressAnswer } from "./egress-answer.ts";
import { EgressFailure } from "./egress-failure.ts";
import type { EgressPost, EgressRequest } from "./egress-request.ts";
import { Exchange } from "./exchange.ts";
import { type GuardDeps, vettedAddresses } from "./guarded-connector.ts";
import { openGuardedSocket, type SocketTarget } from "./guarded-socket.ts";
import { createRequestEndings } from "./request-endings.ts";
import { type ParsedTarget, parseTarget, type Target } from "./target.ts";

/** Connections to where users or operators say. Everything that a configured URL makes the platform call goes through here. */
export interface EgressClient {
  /**
   * Sends the body and resolves with the status as soon as it is there; redirects are not followed, what else comes is read
   * to a bound and dropped. Throws EgressFailure; `timeout` when `deadlineMs` in all is over.
   */
  post(url: string, request: EgressPost): Promise<{ readonly status: number }>;
  /**
   * Sends a request, its body streamed if it is a stream, and resolves when the head of the answer is there; redirects are
   * answers. The body of the answer has to be read or dropped. Throws EgressFailure, or the reason of the signal.
   */
  request(url: string, request: EgressRequest): Promise<EgressAnswer>;
  /** A raw connection for other protocols, its addresses judged as those of requests are. Throws EgressFailure. */
  connect(target: SocketTarget): Promise<Socket>;
  /** Throws EgressFailure `not allowed` when the target is known to lead where it may not. A name that does not resolve may come to do so. */
  check(target: Pick<Target, "host" | "port">, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

const checkMs = 3_000;
/** Longer than most servers and load balancers do, so that they end what is idle; a server's own hint counts if it is less. */
const keptMs = 65_000;
/** A post is not repeated by itself: its connection is not kept until a server without a hint may be about to end it. */
const keptAfterPostMs = 4_000;
const answerBytesMax = 1 << 20;
const targetsMax = 1_000;

type Deps = GuardDeps & { readonly clock?: Pick<Clock, "now" | "monotonicMs"> };

export function createEgressClient(deps: Deps): EgressClient {
  const clock = deps.clock ?? systemClock;
  const pools = createConnectionPools(deps, () => clock.monotonicMs());
  const endings = createRequestEndings();

  /** Parsed once each: callers come back to the same few. */
  const targets = new Map<string, ParsedTarget>();

  function targetOf(url: string): ParsedTarget {
    const known = targets.get(url);
    if (known !== undefined) return known;
    const parsed = parseTarget(url);
    if (targets.size >= targetsMax) targets.clear();
    targets.set(url, parsed);
    return parsed;
  }

  async function send(url: string, request: EgressRequest, keepMs: number): Promise<EgressAnswer> {
    const { method, headers, body, deadlineMs, signal, tls, organizationId = "", bytesMax = answerBytesMax } = request;
    const parsed = targetOf(url);
    if (!parsed.ok) {
      if (isStream(body)) body.destroy();
      throw new EgressFailure("not allowed", "The target is not allowed.");
    }
    signal.throwIfAborted();
    const { origin, pathname, search } = parsed.target.url;
    const exchange = new Exchange(body, {
      bytesMax,
      now: clock.now,
      failureOf(error) {
        if (ending.isLate()) return new EgressFailure("timeout", `No answer within ${deadlineMs / 1_000} s.`);
        return signal.aborted ? signal.reason : EgressFailure.from(error);
      },
      ended: () => ending.release(),
    });
    const ending = endings.begin(signal, deadlineMs, () => exchange.abort(new Error("the request has to end")));
    const path = `${pathname}${search}`;
    pools.of({ organizationId, tls, keepMs }).dispatch({ origin, path, method, headers, body: body ?? null }, exchange);
    return exchange.head;
  }

  return {
    async post(url, request) {
      const answer = await send(url, { ...request, method: "POST" }, keptAfterPostMs);
      // The status is the answer. What follows is read only so that the connection can serve again.
      await answer.drop();
      return { status: answer.status };
    },
    request: (url, request) => send(url, request, keptMs),
    connect: (target) => openGuardedSocket(target, deps),
    async check({ host, port }, signal) {
      try {
        await vettedAddresses(host, port, deps, AbortSignal.any([signal, AbortSignal.timeout(checkMs)]));
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
