import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { withSigns } from "./signs-of-life.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("says every quarter of a minute what it is at, and nothing once that has ended", async () => {
  const said: string[] = [];
  const end = Promise.withResolvers<void>();
  const done = withSigns(
    (line) => said.push(line),
    async (say) => {
      say("making an image (about half a minute)");
      await end.promise;
      say("starting");
    },
  );
  vi.advanceTimersByTime(31_000);
  end.resolve();
  await done;
  vi.advanceTimersByTime(60_000);
  expect(said).toEqual([
    "making an image (about half a minute)",
    "making an image: 15 s so far",
    "making an image: 30 s so far",
    "starting",
  ]);
});
