import type { ManagedService, Operation, ServiceStatus, TaskSummary } from "./responses.ts";
import { ConnectionFailed, NotFound, Unavailable } from "./errors.ts";
import type { Operations } from "./methods.ts";
import { pause } from "./retry.ts";
import type { Services } from "./services.ts";

/** The timeout of a wait has passed. */
export class WaitTimedOut extends Error {
  override readonly name = "WaitTimedOut";
}

/** The service has the status Error instead of the awaited one. */
export class ServiceFailed extends Error {
  override readonly name = "ServiceFailed";
  readonly service: ManagedService;

  constructor(service: ManagedService) {
    super(service.error?.message ?? "the service is in Error");
    this.service = service;
  }
}

/** The operation failed or was canceled; its service is unchanged. */
export class OperationFailed extends Error {
  override readonly name = "OperationFailed";
  readonly operation: Operation;

  constructor(operation: Operation) {
    super(operation.error?.message ?? `the operation ${operation.type} was ${operation.status}`);
    this.operation = operation;
  }
}

/** Limits of a wait. */
export interface WaitLimits {
  /** Timeout of the wait; 15 minutes by default. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called when the API begins not to respond; the wait continues. `onProgress` is called after it responds again. */
  readonly onOutage?: ((error: ConnectionFailed | Unavailable) => void) | undefined;
}

/** Options of a wait for an operation. */
export interface OperationWaitOptions extends WaitLimits {
  /** Called at each change of step or progress. */
  readonly onProgress?: ((operation: Operation) => void) | undefined;
}

/** Options of a wait for a service. */
export interface WaitOptions extends WaitLimits {
  /** Called at each change of step or progress. */
  readonly onProgress?: ((summary: TaskSummary) => void) | undefined;
}

/** Services of one family; without `taskSummary` a wait reports no progress. */
type WaitedServices = Pick<Services, "get"> & Partial<Pick<Services, "taskSummary">>;

/** Target of a wait for the end of a service; `gone` is its former name. */
// oxlint-disable-next-line holdfast/values -- programs of users have the former name
export type DeletedTarget = "deleted" | "gone";

/** Implements Client.waitFor. */
export async function waitFor(
  { services, operations }: { readonly services: WaitedServices; readonly operations: Pick<Operations, "get"> },
  service: ManagedService | string,
  requested: ServiceStatus | DeletedTarget,
  { timeoutMs = defaultTimeoutMs, signal, onProgress, onOutage }: WaitOptions = {},
): Promise<ManagedService | undefined> {
  const target = requested === "gone" ? "deleted" : requested;
  const { id, operation } = typeof service === "string" ? { id: service, operation: null } : service;
  let awaitedId = operation?.id;
  let last = "";
  let wasSeen = typeof service !== "string";

  /** Returns the result when the wait is over. */
  async function poll(signal: AbortSignal): Promise<{ readonly found: ManagedService | undefined } | undefined> {
    const now = await services.get(id, { signal });
    wasSeen = true;
    if (now.operation !== null) awaitedId = now.operation.id;
    else if (now.status === target) {
      // The service may have its former status because the operation failed.
      if (awaitedId !== undefined) await expectSuccess(awaitedId, signal);
      return { found: now };
    } else if (now.status === "Error" && target !== "deleted") throw new ServiceFailed(now);
    else if (awaitedId !== undefined && target !== "deleted") await expectSuccess(awaitedId, signal);
    if (onProgress === undefined || services.taskSummary === undefined) return undefined;
    const summary = await services.taskSummary(id, { signal });
    const text = JSON.stringify(summary);
    if (text !== last) onProgress(summary);
    last = text;
    return undefined;
  }

  /** Throws when the operation failed. A completed one may be followed by another, which is awaited next. */
  async function expectSuccess(operationId: string, signal: AbortSignal): Promise<void> {
    const ended = await operations.get(operationId, { signal });
    if (ended.status === "failed" || ended.status === "cancelled") throw new OperationFailed(ended);
    if (ended.status === "completed") awaitedId = undefined;
  }

  return pollUntil(poll, `the service was not ${target}`, {
    timeoutMs,
    signal,
    isExpectedError: (error) => target === "deleted" && error instanceof NotFound,
    toleratesOutage: () => wasSeen,
    onOutage: (error) => {
      last = "";
      onOutage?.(error);
    },
  });
}

/** Implements Client.waitForOperation. */
export async function waitForOperation(
  operations: Operations,
  operation: Operation | string,
  { timeoutMs = defaultTimeoutMs, signal, onProgress, onOutage }: OperationWaitOptions = {},
): Promise<Operation> {
  const id = typeof operation === "string" ? operation : operation.id;
  let wasSeen = typeof operation !== "string";
  let last = "";

  async function poll(signal: AbortSignal): Promise<{ readonly found: Operation } | undefined> {
    const now = await operations.get(id, { signal });
    wasSeen = true;
    if (now.status === "failed" || now.status === "cancelled") throw new OperationFailed(now);
    if (now.status === "completed") return { found: now };
    const text = `${now.status} ${now.step} ${now.progress_pct}`;
    if (text !== last) onProgress?.(now);
    last = text;
    return undefined;
  }

  const found = await pollUntil(poll, "the operation was not completed", {
    timeoutMs,
    signal,
    toleratesOutage: () => wasSeen,
    onOutage: (error) => {
      last = "";
      onOutage?.(error);
    },
  });
  if (found === undefined) throw new Error("a wait for an operation returned no operation");
  return found;
}

const defaultTimeoutMs = 15 * 60_000;
/** Least time of a poll, so that a short wait has a response. */
const minPollMs = 2_000;

/**
 * Polls with growing pauses until there is a result. Outages of the API, such as during an upgrade, do not end the
 * wait.
 */
export async function pollUntil<T>(
  poll: (signal: AbortSignal) => Promise<{ readonly found: T } | undefined>,
  failure: string,
  wait: {
    readonly timeoutMs: number;
    readonly signal: AbortSignal | undefined;
    /** True for an error that is the awaited result, such as NotFound after a deletion. */
    readonly isExpectedError?: (error: unknown) => boolean;
    /** False until the first response, so that an unreachable API or an unknown id is reported immediately. */
    readonly toleratesOutage: () => boolean;
    readonly onOutage?: WaitLimits["onOutage"];
  },
): Promise<T | undefined> {
  const { timeoutMs, signal } = wait;
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  const timedOut = () => new WaitTimedOut(`${failure} within ${Math.round(timeoutMs / 1000)} s`, { cause });
  const timeout = new AbortController();
  const ending = signal === undefined ? timeout.signal : AbortSignal.any([timeout.signal, signal]);
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 1.3, 1_000)) {
    try {
      const leftMs = Math.max(deadline - performance.now(), minPollMs);
      const timer = setTimeout(() => timeout.abort(timedOut()), leftMs);
      const result = await poll(ending).finally(() => clearTimeout(timer));
      if (result !== undefined) return result.found;
      cause = undefined;
    } catch (error) {
      if (wait.isExpectedError?.(error) === true) return undefined;
      const isOutage = error instanceof ConnectionFailed || error instanceof Unavailable;
      if (!wait.toleratesOutage() || !isOutage) throw error;
      if (cause === undefined) wait.onOutage?.(error);
      cause = error;
    }
    if (performance.now() + pauseMs > deadline) throw timedOut();
    await pause(pauseMs, signal);
  }
}
