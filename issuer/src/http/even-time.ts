import { setTimeout as delay } from "node:timers/promises";

/** Longer than the work of a form takes, with its commit. */
const stepMs = 200;

/**
 * Does work whose length would tell of whom it found rows: its outcome comes at the end of a step of time, whether rows were written
 * or not.
 */
export async function inEvenTime<T>(monotonicMs: () => number, work: () => Promise<T>): Promise<T> {
  const beganMs = monotonicMs();
  try {
    return await work();
  } finally {
    await delay(stepMs - ((monotonicMs() - beganMs) % stepMs));
  }
}
