import type { Backend, ClaimRequest } from "./backend.ts";
import { createBell } from "./bell.ts";
import { createHand, type InHand } from "./hand.ts";
import { handle, textOf } from "./handling.ts";
import { startHeartbeat } from "./heartbeat.ts";
import type { Handler, Worker, WorkOptions, WorkTally } from "./queue-types.ts";
import { createSettling } from "./settling.ts";
import { stopOnSignals } from "./stop-on.ts";

/** Claims under way at a time: one is handled while the other is fetched. */
const claimers = 2;
const firstIdleMs = 20;
const longestIdleMs = 1000;
const longestPauseMs = 5000;

/** 2, 4, 8 s and so on, up to 15 minutes. */
const usualBackoff = (attemptCount: number) => Math.min(2 ** attemptCount, 900);

/**
 * Begins to claim and to handle. A message is waiting, running, settling, and over: acked, nacked or lost. Messages are
 * claimed while there is room for half a batch; acks travel with the next claim; a heartbeat extends the other claims.
 */
export function startWorker<P>(backend: Backend, handler: Handler<P>, options: WorkOptions = {}): Worker {
  const { concurrency = 10, backoff = usualBackoff, timeoutSeconds = 43_200, onError = () => undefined } = options;
  const batch = Math.min(options.batch ?? concurrency, backend.mostClaimed);
  const { visibilitySeconds: ownSeconds } = options;
  if (!isBetween(concurrency, 1, 100_000) || !isBetween(batch, 1, 1000))
    throw new RangeError("concurrency and batch are 1 or more");
  if (ownSeconds !== undefined && !isBetween(ownSeconds, 1, 43_200))
    throw new RangeError("visibilitySeconds is 1 to 43200");
  const hand = createHand();
  const bell = createBell();
  const settling = createSettling(backend, hand, { onError, fail });
  const capacity = concurrency + batch - 1;
  let waiting: InHand[] = [];
  let running = 0;
  let asked = 0;
  let isStopping = false;
  let failure: { readonly error: unknown } | undefined;

  const room = () => capacity - waiting.length - running - asked;

  function dispatch(): void {
    while (running < concurrency) {
      const message = waiting.shift();
      if (message === undefined) return;
      // The heartbeat may have lost it meanwhile.
      if (message.stage === "waiting") run(message).catch(fail);
    }
  }

  async function run(message: InHand): Promise<void> {
    running += 1;
    message.stage = "running";
    const handled = await handle(handler, message, timeoutSeconds * 1000);
    running -= 1;
    if (message.stage === "running") {
      if (handled.kind === "done") settling.ack(message);
      else {
        const delaySeconds = handled.discard ? 0 : spread(backoff(message.attemptCount));
        settling.nack(message, { delaySeconds, error: textOf(handled.error), discard: handled.discard });
        onError(handled.error);
      }
    }
    dispatch();
    bell.ring();
  }

  /** Resolves when the worker stops. */
  async function keepClaiming(): Promise<void> {
    let idleMs = firstIdleMs;
    let pauseMs = 0;
    while (!isStopping) {
      if (room() < Math.ceil(batch / 2)) {
        await bell.wait();
        continue;
      }
      const most = Math.min(batch, room());
      asked += most;
      const acks = settling.takeAcks();
      try {
        const found = await claimAndTake({ most, visibilitySeconds, acks });
        pauseMs = 0;
        idleMs = found > 0 ? firstIdleMs : Math.min(idleMs * 2, longestIdleMs);
        asked -= most;
        if (found < most && !isStopping) await stopped(idleMs);
      } catch (error) {
        asked -= most;
        settling.giveBack(acks);
        if (backend.isFinal(error)) return fail(error);
        onError(error);
        pauseMs = Math.min(Math.max(pauseMs * 2, 100), longestPauseMs);
        await stopped(spread(pauseMs));
      }
    }
  }

  async function claimAndTake(request: ClaimRequest): Promise<number> {
    const begun = performance.now();
    const acks = request.acks as readonly InHand[];
    const { messages, lost } = await backend.claim(request);
    for (const message of acks) hand.end(message, lost.has(message.id) ? "lost" : "acked");
    const taken = messages.map((message) => hand.take(message, begun + request.visibilitySeconds * 1000));
    if (isStopping) settling.release(taken);
    else waiting.push(...taken);
    dispatch();
    return taken.length;
  }

  const ending = createBell();
  const stopped = (ms: number) => (isStopping ? Promise.resolve() : ending.wait(ms));

  function fail(error: unknown): void {
    failure ??= { error };
    beginToStop();
  }

  function beginToStop(): void {
    if (isStopping) return;
    isStopping = true;
    settling.release(waiting.filter(({ stage }) => stage === "waiting"));
    waiting = [];
    bell.ring();
    ending.ring();
  }

  let visibilitySeconds = ownSeconds ?? 0;

  async function work(): Promise<WorkTally> {
    const endSignals = stopOnSignals(options, beginToStop);
    for (let pauseMs = 100; visibilitySeconds === 0 && !isStopping; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        visibilitySeconds = await backend.visibilitySeconds();
      } catch (error) {
        if (backend.isFinal(error)) fail(error);
        else onError(error);
        await stopped(pauseMs);
      }
    }
    const heartbeat = startHeartbeat(backend, hand, Math.max(visibilitySeconds, 1), { onError, fail });
    try {
      await Promise.all(Array.from({ length: claimers }, keepClaiming));
      while (running > 0) await bell.wait();
      await settling.drained();
    } finally {
      heartbeat.end();
      endSignals();
    }
    if (failure !== undefined) throw failure.error;
    return { ...hand.tally };
  }

  const finished = work();
  // A caller that does not await `finished` still gets the error from stop().
  finished.catch(() => undefined);
  return {
    finished,
    stop() {
      beginToStop();
      return finished;
    },
    get tally() {
      return { ...hand.tally };
    },
  };
}

const isBetween = (value: number, least: number, most: number) =>
  Number.isFinite(value) && value >= least && value <= most;

/** A fifth more or less, so that messages that failed together are not retried together. */
const spread = (value: number) => Math.min(Math.max(value, 0), 36_000) * (0.8 + 0.4 * Math.random());
