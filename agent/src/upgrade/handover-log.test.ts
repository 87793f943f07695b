import { expect, test } from "vitest";
import { failureReasonIn } from "./handover-log.ts";

const line = (fields: object) => JSON.stringify({ level: 40, time: 1, pid: 7, name: "agent", ...fields });

test.each([
  ["nothing", "", ""],
  ["a line of its log", line({ msg: "starting" }), "starting"],
  [
    "the reason in its log, not a later line",
    [line({ msg: "session refused", reason: "unknown machine" }), line({ msg: "stopping" })].join("\n"),
    "session refused: unknown machine",
  ],
  [
    "an error in its log, without its stack",
    line({
      msg: "settings not read",
      error: { name: "Error", message: "no such file", stack: "Error: no such file\n at x" },
    }),
    "settings not read: no such file",
  ],
  [
    "an uncaught error",
    [
      "file:///holdfast/code/main.mjs:7",
      '        throw new Error("broken");',
      "        ^",
      "",
      "Error: broken",
      "    at file:///holdfast/code/main.mjs:7:15",
      "",
      "Node.js v24.21.0",
    ].join("\n"),
    "Error: broken",
  ],
  ["complete lines, if the last one is truncated", `${line({ msg: "starting" })}\n{"level":30,"ti`, "starting"],
])("the failure reason of an agent is %s", (_what, text, reason) => {
  expect(failureReasonIn(text)).toBe(reason);
});
