import { NotFound } from "./errors.ts";
import { pause } from "./retry.ts";
import type { Services } from "./services.ts";
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
  /** Of the whole wait, 15 minutes when left out. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Told of each change of the step or of the progress. */
  readonly onProgress?: ((summary: TaskSummary) => void) | undefined;
}

/** As Client.waitFor promises it. */
export async function waitFor(
  services: Services,
  service: ManagedService | string,
  target: ServiceStatus | "gone",
  options: WaitOptions = {},
): Promise<ManagedService | undefined> {
  const { timeoutMs = 15 * 60_000, signal, onProgress } = options;
  const id = typeof service === "string" ? service : service.id;
  const end = performance.now() + timeoutMs;
  let last = "";
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 1.3, 1_000)) {
    try {
      const now = await services.get(id, { signal });
      if (now.status === target && now.operation === null) return now;
      if (now.status === "Error" && now.operation === null && target !== "gone") throw new ServiceFailed(now);
      if (onProgress !== undefined) {
        const summary = await services.taskSummary(id, { signal });
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
