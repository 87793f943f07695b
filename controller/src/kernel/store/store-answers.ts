import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { Store } from "./store.ts";

const askAgainMs = 500;

/** Resolves when the store answers, however long that takes. Says once that it waits. */
export async function storeAnswers(store: Pick<Store, "revision">, log: Log, signal: AbortSignal): Promise<void> {
  for (let asked = 1; ; asked += 1) {
    try {
      await store.revision(signal);
      if (asked > 1) log.info("the store answers");
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (asked === 1) log.warn("waiting for the store", { error: String(error) });
      await delay(askAgainMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
}
