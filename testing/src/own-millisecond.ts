import { waitUntil } from "./wait-until.ts";

/** A millisecond since 1970 after all that ended before the call, and before all that begins after it. */
export async function ownMillisecond(): Promise<number> {
  await untilAfter(Date.now());
  const at = Date.now();
  await untilAfter(at);
  return at;
}

const untilAfter = (ms: number) => waitUntil("the clock advances", () => Date.now() > ms, { everyMs: 1 });
