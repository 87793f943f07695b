import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { inBackground } from "./background.ts";

test("work that fails in the background is one line of the log, and no rejection without a handler", async () => {
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
    inBackground(log, "a look", Promise.reject(error));
    inBackground(log, "another look", Promise.resolve());
    await turn();
    expect(lines).toEqual([["work in the background failed", { work: "a look", error }]]);
    expect(rejections).toEqual([]);
  } finally {
    process.off("unhandledRejection", note);
  }
});
