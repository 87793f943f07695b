import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { stopOnSignals } from "./stop-signals.ts";

const count = () => process.listenerCount("SIGTERM");

test("twenty workers share one listener of the process and one of their AbortSignal, and each is stopped", () => {
  const before = count();
  const controller = new AbortController();
  const stopped: number[] = [];
  const ends = Array.from({ length: 20 }, (_, index) =>
    stopOnSignals({ signal: controller.signal }, () => stopped.push(index)),
  );
  expect(count()).toBe(before + 1);
  expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
  ends[0]?.();
  process.emit("SIGTERM");
  controller.abort();
  const others = Array.from({ length: 19 }, (_, index) => index + 1);
  expect(stopped).toEqual([...others, ...others]);
  for (const end of ends) end();
  expect(count()).toBe(before);
});

test("a worker that is created after the end of all others is stopped too", () => {
  const before = count();
  stopOnSignals({}, () => undefined)();
  expect(count()).toBe(before);
  let stops = 0;
  const end = stopOnSignals({}, () => {
    stops += 1;
    end();
  });
  process.emit("SIGTERM");
  expect([stops, count()]).toEqual([1, before]);
});

test("no signal of the process stops a worker without them, and an aborted signal stops it immediately", () => {
  const before = count();
  let stops = 0;
  const end = stopOnSignals({ stopOn: [], signal: AbortSignal.abort() }, () => {
    stops += 1;
  });
  expect([stops, count()]).toEqual([1, before]);
  end();
});
