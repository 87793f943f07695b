import { expect, test } from "vitest";
import { createFailingKeys, describedKeysMax } from "./failing-keys.ts";

test("failing keys are described up to a limit, and the rest is counted", () => {
  const failing = createFailingKeys(() => 5);
  for (let at = 0; at < describedKeysMax + 10; at += 1) failing.failed(`k${at}`, new Error(`e${at}`));
  expect(failing.count).toBe(describedKeysMax + 10);
  expect(failing.described()).toHaveLength(describedKeysMax);
  expect(failing.described()[0]).toEqual({ key: "k0", failures: 1, since: 5, lastError: "Error: e0" });

  // A key that recovers frees its description for the next key that fails.
  failing.end("k0");
  failing.failed("k25", new Error("again"));
  expect(failing.count).toBe(describedKeysMax + 9);
  expect(failing.described().at(-1)).toMatchObject({ key: "k25", failures: 2, lastError: "Error: again" });
  expect(failing.described()).toHaveLength(describedKeysMax);
});

test("a repeated error is not new, for a described key and for any other", () => {
  const failing = createFailingKeys(() => 0);
  for (let at = 0; at < describedKeysMax; at += 1) failing.failed(`k${at}`, new Error("no"));
  for (const key of ["k0", "another"]) {
    failing.end(key);
    expect(failing.failed(key, new Error("no"))).toEqual({ failures: 1, isNewError: true });
    expect(failing.failed(key, new Error("no"))).toEqual({ failures: 2, isNewError: false });
    expect(failing.failed(key, new Error("other"))).toEqual({ failures: 3, isNewError: true });
  }
});

test("the last failure stays after the key has recovered", () => {
  const failing = createFailingKeys(() => 7);
  expect(failing.last).toBeUndefined();
  failing.failed("a", new Error("no"));
  failing.end("a");
  expect(failing.count).toBe(0);
  expect(failing.last).toEqual({ error: "Error: no", at: 7 });
});
