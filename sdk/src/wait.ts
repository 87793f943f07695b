import type { ManagedService, Operation, ServiceStatus, TaskSummary } from "./answers.ts";
import { ConnectionFailed, NotFound, Unavailable } from "./errors.ts";
import type { Operations } from "./methods.ts";
import { pause } from "./retry.ts";
import type { Services } from "./services.ts";

/** The time ran out before it was there. */
export class WaitTimedOut extends Error {
  override readonly name = "WaitTimedOut";
}

/** The service came to Error instead. */
export class ServiceFailed extends Error {
  override readonly name = "ServiceFailed";
  readonly service: ManagedService;

  constructor(service: ManagedService) {
    super(service.error?.message ?? "the service is in Error");
    this.service = service;
  }
}

/** The operation failed or was cancelled, and its subject is unchanged. */
export class OperationFailed extends Error {
  override readonly name = "OperationFailed";
  readonly operation: Operation;

  constructor(operation: Operation) {
    super(operation.error?.message ?? `the operation ${operation.type} was ${operation.status}`);
    this.operation = operation;
  }
}

/** How long to wait. */
export interface Limits {
  /** Of the whole wait, 15 minutes when left out. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How long to wait, and whom to tell meanwhile. */
export interface OperationWaitOptions extends Limits {
  /** Told of each change of the step or of the progress. */
  readonly onProgress?: ((operation: Operation) => void) | undefined;
}

/** How long to wait, and whom to tell meanwhile. */
export interface WaitOptions extends Limits {
  /** Told of each change of the step or of the progress. */
  readonly onProgress?: ((summary: TaskSummary) => void) | undefined;
}

/** As Client.waitFor promises it. */
export async function waitFor(
  { services, operations }: { readonly services: Services; readonly operations: Operations },
  service: ManagedService | string,
  target: ServiceStatus | "gone",
  { timeoutMs = defaultTimeoutMs, signal, onProgress }: WaitOptions = {},
): Promise<ManagedService | undefined> {
  const { id, operation } = typeof service === "string" ? { id: service, operation: null } : service;
  let awaited = operation?.id;
  let last = "";
  let wasSeen = typeof service !== "string";

  /** The result of the wait, if it is over. */
  async function look(): Promise<{ readonly found: ManagedService | undefined } | undefined> {
    const now = await services.get(id, { signal });
    wasSeen = true;
    if (now.operation !== null) awaited = now.operation.id;
    else if (now.status === target) {
      // The service may be in its former state because the operation failed.
      if (awaited !== undefined) await expectSuccess(awaited);
      return { found: now };
    } else if (now.status === "Error" && target !== "gone") throw new ServiceFailed(now);
    else if (awaited !== undefined && target !== "gone") await expectSuccess(awaited);
    if (onProgress === undefined) return undefined;
    const summary = await services.taskSummary(id, { signal });
    const text = JSON.stringify(summary);
    if (text !== last) onProgress(summary);
    last = text;
    return undefined;
  }

  /** An operation that worked may have a successor; a failed one has none. */
  async function expectSuccess(operationId: string): Promise<void> {
    const ended = await operations.get(operationId, { signal });
    if (ended.status === "failed" || ended.status === "cancelled") throw new OperationFailed(ended);
    if (ended.status === "completed") awaited = undefined;
  }

  return untilOver(look, `the service was not ${target}`, {
    timeoutMs,
    signal,
    isOver: (error) => target === "gone" && error instanceof NotFound,
    mayBeAway: () => wasSeen,
  });
}

/** As Client.waitForOperation promises it. */
export async function waitForOperation(
  operations: Operations,
  operation: Operation | string,
  { timeoutMs = defaultTimeoutMs, signal, onProgress }: OperationWaitOptions = {},
): Promise<Operation> {
  const id = typeof operation === "string" ? operation : operation.id;
  let wasSeen = typeof operation !== "string";
  let last = "";

  async function look(): Promise<{ readonly found: Operation } | undefined> {
    const now = await operations.get(id, { signal });
    wasSeen = true;
    if (now.status === "failed" || now.status === "cancelled") throw new OperationFailed(now);
    if (now.status === "completed") return { found: now };
    const text = `${now.status} ${now.step} ${now.progress_pct}`;
    if (text !== last) onProgress?.(now);
    last = text;
    return undefined;
  }

  const found = await untilOver(look, "the operation was not over", { timeoutMs, signal, mayBeAway: () => wasSeen });
  if (found === undefined) throw new Error("a wait for an operation ends with it");
  return found;
}

const defaultTimeoutMs = 15 * 60_000;

/**
 * Polls until there is a result, with growing pauses; an API that is away for a while, as in an upgrade, is polled on.
 */
export async function untilOver<T>(
  look: () => Promise<{ readonly found: T } | undefined>,
  failure: string,
  wait: {
    readonly timeoutMs: number;
    readonly signal: AbortSignal | undefined;
    /** Is this error the result that is waited for? */
    readonly isOver?: (error: unknown) => boolean;
    /** An API that never answered, or an unknown id, is reported at once. */
    readonly mayBeAway: () => boolean;
  },
): Promise<T | undefined> {
  const { timeoutMs, signal } = wait;
  const end = performance.now() + timeoutMs;
  let cause: unknown;
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 1.3, 1_000)) {
    try {
      const over = await look();
      if (over !== undefined) return over.found;
      cause = undefined;
    } catch (error) {
      if (wait.isOver?.(error) === true) return undefined;
      const passes = error instanceof ConnectionFailed || error instanceof Unavailable;
      if (!wait.mayBeAway() || !passes) throw error;
      cause = error;
    }
    if (performance.now() + pauseMs > end)
      throw new WaitTimedOut(`${failure} within ${Math.round(timeoutMs / 1000)} s`, { cause });
    await pause(pauseMs, signal);
  }
}
