import { waitUntil } from "./wait-until.ts";

/** A time in ms since 1970 that is later than all earlier events, and earlier than all later events, by the clock. */
export async function reserveMillisecond(): Promise<number> {
  await untilAfter(Date.now());
  const at = Date.now();
  await untilAfter(at);
  return at;
}

const untilAfter = (ms: number) => waitUntil("the clock advances", () => Date.now() > ms, { everyMs: 1 });
