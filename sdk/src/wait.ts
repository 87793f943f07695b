import { NotFound } from "./errors.ts";
import type { Services } from "./services.ts";
import { pause } from "./transport.ts";
import type { ManagedService, ServiceStatus, TaskSummary } from "./types.ts";

/** The time ran out before the service was there. */
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

export interface WaitOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Told of each change of the step or of the progress. */
  readonly onProgress?: (summary: TaskSummary) => void;
}

/**
 * Waits until the service has the status and no operation is left, or is gone. Throws ServiceFailed when it comes to
 * Error (unless that was asked for), WaitTimedOut, or the signal's reason.
 */
export async function waitFor(
  services: Services,
  id: string,
  target: ServiceStatus | "gone",
  options: WaitOptions = {},
): Promise<ManagedService | undefined> {
  const { timeoutMs = 15 * 60_000, signal, onProgress } = options;
  const end = performance.now() + timeoutMs;
  const call = signal === undefined ? {} : { signal };
  let last = "";
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 1.3, 1_000)) {
    try {
      const service = await services.get(id, call);
      if (service.status === target && service.operation === null) return service;
      if (service.status === "Error" && service.operation === null && target !== "gone")
        throw new ServiceFailed(service);
      if (onProgress !== undefined) {
        const summary = await services.taskSummary(id, call);
        const text = JSON.stringify(summary);
        if (text !== last) onProgress(summary);
        last = text;
      }
    } catch (error) {
      if (target === "gone" && error instanceof NotFound) return undefined;
      throw error;
    }
    if (performance.now() + pauseMs > end)
      throw new WaitTimedOut(`the service was not ${target} within ${Math.round(timeoutMs / 1000)} s`);
    await pause(pauseMs, signal);
  }
}
