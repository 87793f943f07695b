import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { withProgress } from "./progress.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("prints the current step every 15 s, and nothing after its end", async () => {
  const printed: string[] = [];
  const end = Promise.withResolvers<void>();
  const done = withProgress(
    (line) => printed.push(line),
    async (print) => {
      print("making an image (about half a minute)");
      await end.promise;
      print("starting");
    },
  );
  vi.advanceTimersByTime(31_000);
  end.resolve();
  await done;
  vi.advanceTimersByTime(60_000);
  expect(printed).toEqual([
    "making an image (about half a minute)",
    "making an image: 15 s elapsed",
    "making an image: 30 s elapsed",
    "starting",
  ]);
});
