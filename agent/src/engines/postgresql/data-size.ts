import { setTimeout as delay } from "node:timers/promises";
import type { Instance } from "../engine-driver.ts";
import { withSession } from "./session.ts";

/** Bytes of all databases. To measure them the engine looks at each file, of which there may be hundreds of thousands. */
export interface DataSize {
  /** The newest figure; 0 before there is one. It waits a moment for a new one, and goes on to be measured when that is over. */
  newest(instance: Instance): Promise<number>;
}

const patienceMs = 1_000;
const measureWithinMs = 300_000;
/** After a measurement that took long there is a pause of so many times as long. */
const pauseShare = 9;

export function createDataSize(measure: (instance: Instance) => Promise<number> = measured): DataSize {
  let bytes = 0;
  let underWay: Promise<void> | undefined;
  let nextAtMs = 0;

  async function look(instance: Instance): Promise<void> {
    const startedMs = performance.now();
    try {
      bytes = await measure(instance);
    } catch {
      // The engine stops, or is too slow today: the figure of before is as good as any.
    } finally {
      underWay = undefined;
      nextAtMs = performance.now() + pauseShare * (performance.now() - startedMs);
    }
  }

  return {
    async newest(instance) {
      if (underWay === undefined && performance.now() >= nextAtMs) underWay = look(instance);
      await Promise.race([underWay, delay(patienceMs, undefined, { ref: false })]);
      return bytes;
    },
  };
}

function measured(instance: Instance): Promise<number> {
  const work = AbortSignal.timeout(measureWithinMs);
  const ask = "SELECT sum(pg_database_size(oid)) AS size FROM pg_database";
  return withSession(
    instance,
    work,
    async (session) => {
      const [row] = await session.rows<{ size: string }>(ask);
      return Number(row?.size ?? 0);
    },
    { statementMs: measureWithinMs },
  );
}
