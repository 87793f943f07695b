import { setTimeout as delay } from "node:timers/promises";

/** A time step. The work of a form, including its commit, takes less. */
const stepMs = 200;

/**
 * Runs work and delays its outcome to a multiple of a time step, so that the response time does not reveal whether a
 * user exists.
 */
export async function inQuantizedTime<T>(monotonicMs: () => number, work: () => Promise<T>): Promise<T> {
  const startedMs = monotonicMs();
  try {
    return await work();
  } finally {
    await delay(stepMs - ((monotonicMs() - startedMs) % stepMs));
  }
}
