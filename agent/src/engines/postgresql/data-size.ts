import { setTimeout as delay } from "node:timers/promises";
import type { Instance } from "../engine-driver.ts";
import { withSession } from "./session.ts";

/** Size of all databases in bytes. The engine measures it file by file, of which there may be hundreds of thousands. */
export interface DataSize {
  /** Newest size; 0 before the first measurement. Waits up to a limit for a measurement in flight, which continues. */
  newest(instance: Instance): Promise<number>;
}

const waitMs = 1_000;
const measureWithinMs = 300_000;
/** Pause after a measurement, as a multiple of its duration. */
const pauseFactor = 9;

export function createDataSize(measure: (instance: Instance) => Promise<number> = measureDatabases): DataSize {
  let bytes = 0;
  let inFlight: Promise<void> | undefined;
  let nextAtMs = 0;

  async function measureOnce(instance: Instance): Promise<void> {
    const startedMs = performance.now();
    try {
      bytes = await measure(instance);
    } catch {
      // The engine stops or is too slow: the previous measurement remains.
    } finally {
      inFlight = undefined;
      nextAtMs = performance.now() + pauseFactor * (performance.now() - startedMs);
    }
  }

  return {
    async newest(instance) {
      if (inFlight === undefined && performance.now() >= nextAtMs) inFlight = measureOnce(instance);
      await Promise.race([inFlight, delay(waitMs, undefined, { ref: false })]);
      return bytes;
    },
  };
}

function measureDatabases(instance: Instance): Promise<number> {
  const signal = AbortSignal.timeout(measureWithinMs);
  const sizeSql = "SELECT sum(pg_database_size(oid)) AS size FROM pg_database";
  return withSession(
    instance,
    signal,
    async (session) => {
      const [row] = await session.rows<{ size: string }>(sizeSql);
      return Number(row?.size ?? 0);
    },
    { statementMs: measureWithinMs },
  );
}
