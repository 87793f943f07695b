import { partial } from "@holdfast/testing/partial.ts";
import type { Operation } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { operationDetail } from "./operation-view.ts";

const done = partial<Operation>({ status: "completed", error: null, warnings: [], step: "Finish", progress_pct: 100 });

test.each([
  [{ status: "failed", error: { code: "not_in_time", message: "It made no progress." } }, "It made no progress."],
  [{ status: "running", step: "SetupServer", progress_pct: 10 }, "Setup server, 10%"],
  [{ status: "pending", step: null, progress_pct: 0 }, "Waiting to start, 0%"],
  [{ warnings: ["The database a is invalid.", "So is b."] }, "The database a is invalid. So is b."],
  [{}, ""],
] as const)("an operation with %j has the detail %j", (change, detail) =>
  expect(operationDetail(partial<Operation>({ ...done, ...change }))).toBe(detail),
);
