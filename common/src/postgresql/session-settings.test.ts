import { expect, test } from "vitest";
import { isPinned, startupOptions } from "./session-settings.ts";

test("startup options contain the pinned settings, which extra settings replace", () => {
  const options = startupOptions({ statement_timeout: "5s", application_name: "a b\\c" });
  expect(options).toContain("-c statement_timeout=5s ");
  expect(options).not.toContain("statement_timeout=0");
  expect(options).toContain("-c default_transaction_isolation=read\\ committed ");
  expect(options).toContain("-c local_preload_libraries= ");
  expect(options).toContain("-c application_name=a\\ b\\\\c");
});

test("isPinned names the settings that platform sessions override", () => {
  expect(isPinned("transaction_timeout")).toBe(true);
  expect(isPinned("TimeZone")).toBe(true);
  expect(isPinned("work_mem")).toBe(false);
});
