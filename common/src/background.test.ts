import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { expect, test } from "vitest";
import { inBackground } from "./background.ts";

test("failed background work is logged once and causes no unhandled rejection", async () => {
  const lines: unknown[] = [];
  const rejections: unknown[] = [];
  const note = (error: unknown) => {
    rejections.push(error);
  };
  process.on("unhandledRejection", note);
  try {
    const log = {
      error(...line: unknown[]) {
        lines.push(line);
      },
    };
    const error = new Error("planted");
    inBackground(log, "a check", Promise.reject(error));
    inBackground(log, "another look", Promise.resolve());
    await yieldToEventLoop();
    expect(lines).toEqual([["background work failed", { work: "a check", error }]]);
    expect(rejections).toEqual([]);
  } finally {
    process.off("unhandledRejection", note);
  }
});
