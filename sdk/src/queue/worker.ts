import type { Backend, ClaimRequest } from "./backend.ts";
import { createInFlightMessages, type InFlightMessage } from "./in-flight.ts";
import { handle } from "./handling.ts";
import { startHeartbeat } from "./heartbeat.ts";
import type { Handler, Worker, WorkOptions, WorkTally } from "./queue-types.ts";
import { createSettling } from "./settling.ts";
import { stopOnSignals } from "./stop-signals.ts";
import { defaultBackoff, errorText, jittered, retryDelay } from "./values.ts";

/** Number of concurrent claims: the messages of one are handled while the other is fetched. */
const concurrentClaims = 2;
/** Pauses after a claim that found fewer messages than requested. */
const minIdleMs = 20;
const maxIdleMs = 1000;
const maxRetryDelayMs = 5000;
/** Maximum delay of a timer of JavaScript. */
const maxTimeoutSeconds = 2_147_483;

/**
 * Starts a worker, which claims messages and calls the handler. A message is waiting, running, settling, and over:
 * acked, nacked or lost. Two loops claim while half a batch fits into the worker; acks are sent with the next claim; a
 * heartbeat extends the claims of waiting and running messages. At a stop, waiting messages are returned and running
 * handlers end.
 */
export function startWorker<P>(backend: Backend, handler: Handler<P>, options: WorkOptions = {}): Worker {
  const { concurrency = 10, backoff = defaultBackoff, timeoutSeconds = 43_200, onError = () => undefined } = options;
  const batch = Math.min(options.batch ?? concurrency, backend.claimMax);
  const { visibilitySeconds: ownSeconds } = options;
  if (!isIntegerBetween(concurrency, 1, 100_000) || !isIntegerBetween(batch, 1, 1000))
    throw new RangeError("concurrency must be an integer from 1 to 100000, and batch an integer from 1 to 1000");
  if (!(timeoutSeconds > 0 && timeoutSeconds <= maxTimeoutSeconds))
    throw new RangeError(`timeoutSeconds must be above 0 and at most ${maxTimeoutSeconds}`);
  if (ownSeconds !== undefined && !isBetween(ownSeconds, 1, 43_200))
    throw new RangeError("visibilitySeconds must be 1 to 43200");
  const inFlight = createInFlightMessages();
  const changed = createNotifier();
  const settling = createSettling(backend, inFlight, { onError, fail });
  const capacity = concurrency + batch - 1;
  let waiting: InFlightMessage[] = [];
  let running = 0;
  let requested = 0;
  let isStopping = false;
  let failure: { readonly error: unknown } | undefined;

  const freeSlots = () => capacity - waiting.length - running - requested;

  function dispatch(): void {
    while (running < concurrency) {
      const message = waiting.shift();
      if (message === undefined) return;
      // The heartbeat may have found, while the message waited, that its claim was lost.
      if (message.stage === "waiting") run(message).catch(fail);
    }
  }

  async function run(message: InFlightMessage): Promise<void> {
    running += 1;
    message.stage = "running";
    const handled = await handle(handler, message, timeoutSeconds * 1000);
    running -= 1;
    if (message.stage === "running") {
      if (handled.kind === "done") settling.ack(message);
      else {
        const { error, discard } = handled;
        const { delaySeconds, errors } = discard ? { delaySeconds: 0, errors: [] } : delayAfter(message);
        settling.nack(message, { delaySeconds, error: errorText(error), discard });
        for (const each of [error, ...errors]) onError(each);
      }
    }
    dispatch();
    changed.notify();
  }

  /** The delay after a failed attempt: the default one if `backoff` throws. */
  function delayAfter({ attemptCount }: InFlightMessage): { delaySeconds: number; errors: unknown[] } {
    try {
      return { delaySeconds: retryDelay(backoff(attemptCount), attemptCount), errors: [] };
    } catch (error) {
      return { delaySeconds: retryDelay(undefined, attemptCount), errors: [error] };
    }
  }

  /** Claims until the worker stops. */
  async function claimUntilStopped(): Promise<void> {
    let idleMs = minIdleMs;
    let retryDelayMs = 0;
    while (!isStopping) {
      if (freeSlots() < Math.ceil(batch / 2)) {
        await changed.wait();
        continue;
      }
      const max = Math.min(batch, freeSlots());
      requested += max;
      const acks = settling.takeAcks();
      try {
        const found = await claimAndTake({ max, visibilitySeconds, acks });
        retryDelayMs = 0;
        idleMs = found > 0 ? minIdleMs : Math.min(idleMs * 2, maxIdleMs);
        requested -= max;
        if (found < max && !isStopping) await stopped(idleMs);
      } catch (error) {
        requested -= max;
        settling.requeueAcks(acks);
        if (backend.isPermanent(error)) return fail(error);
        onError(error);
        retryDelayMs = Math.min(Math.max(retryDelayMs * 2, 100), maxRetryDelayMs);
        await stopped(jittered(retryDelayMs));
      }
    }
  }

  async function claimAndTake(request: ClaimRequest): Promise<number> {
    const startedAt = performance.now();
    const acks = request.acks as readonly InFlightMessage[];
    const { messages, lost } = await backend.claim(request);
    for (const message of acks) inFlight.end(message, lost.has(message.id) ? "lost" : "acked");
    const claimed = messages.map((message) => inFlight.add(message, startedAt + request.visibilitySeconds * 1000));
    if (isStopping) settling.release(claimed);
    else waiting.push(...claimed);
    dispatch();
    return claimed.length;
  }

  const stopping = createNotifier();
  const stopped = (ms: number) => (isStopping ? Promise.resolve() : stopping.wait(ms));

  function fail(error: unknown): void {
    failure ??= { error };
    startStopping();
  }

  function startStopping(): void {
    if (isStopping) return;
    isStopping = true;
    settling.release(waiting.filter(({ stage }) => stage === "waiting"));
    waiting = [];
    changed.notify();
    stopping.notify();
  }

  let visibilitySeconds = ownSeconds ?? 0;

  async function work(): Promise<WorkTally> {
    const endSignals = stopOnSignals(options, startStopping);
    for (let delayMs = 100; visibilitySeconds === 0 && !isStopping; delayMs = Math.min(delayMs * 2, maxRetryDelayMs)) {
      try {
        visibilitySeconds = await backend.visibilitySeconds();
      } catch (error) {
        if (backend.isPermanent(error)) fail(error);
        else onError(error);
        await stopped(delayMs);
      }
    }
    const heartbeat = startHeartbeat(backend, inFlight, Math.max(visibilitySeconds, 1), { onError, fail });
    try {
      await Promise.all(Array.from({ length: concurrentClaims }, claimUntilStopped));
      while (running > 0) await changed.wait();
      await settling.drained();
    } finally {
      heartbeat.end();
      endSignals();
    }
    if (failure !== undefined) throw failure.error;
    return { ...inFlight.outcomes };
  }

  const finished = work();
  // Avoids an unhandled rejection: a caller that does not await `finished` gets the error from stop().
  finished.catch(() => undefined);
  return {
    finished,
    stop() {
      startStopping();
      return finished;
    },
    get tally() {
      return { ...inFlight.outcomes };
    },
  };
}

const isBetween = (value: number, min: number, max: number) => Number.isFinite(value) && value >= min && value <= max;

const isIntegerBetween = (value: number, min: number, max: number) =>
  Number.isInteger(value) && isBetween(value, min, max);

/** Wakes all waiters on a change. */
interface Notifier {
  notify(): void;
  /** Resolves at the next notification, or after the time. */
  wait(ms?: number): Promise<void>;
}

function createNotifier(): Notifier {
  const waiting = new Set<() => void>();
  return {
    notify() {
      for (const wake of waiting) wake();
    },
    wait: (ms) =>
      new Promise((resolve) => {
        const wake = () => {
          waiting.delete(wake);
          clearTimeout(timer);
          resolve();
        };
        const timer = ms === undefined ? undefined : setTimeout(wake, ms);
        waiting.add(wake);
      }),
  };
}
