import { HoldfastError } from "@holdfast/common/errors.ts";
import { describe, expect, test } from "vitest";
import { createFailingKeys, describedKeysMax, errorText } from "./failing-keys.ts";

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

const secret = "c2VjcmV0LXZhbHVl";

describe("the text of an error for operators", () => {
  test("has the causes of the error", () => {
    const cause = new Error("connect ECONNREFUSED 127.0.0.1:2379");
    expect(errorText(new TypeError("fetch failed", { cause }))).toBe(
      "TypeError: fetch failed: caused by Error: connect ECONNREFUSED 127.0.0.1:2379",
    );
    expect(errorText(new HoldfastError("OBJECT_NOT_FOUND", "There is no machine m."))).toContain(
      "There is no machine m.",
    );
    expect(errorText("a text")).toBe("a text");
  });

  test("ends after three causes, also when they form a circle", () => {
    const error = new Error("around");
    error.cause = error;
    expect(errorText(error)).toBe("Error: around");
  });

  // biome-ignore format: a table
  test.each([
    ["the password of a URL",         `connect postgres://app:${secret}@db.local/x failed`,              "connect postgres://[redacted]@db.local/x failed"],
    ["the signature of a URL",        `GET https://s/b?X-Amz-Signature=${secret}&partNumber=1 is 403`,   "GET https://s/b?[redacted]&partNumber=1 is 403"],
    ["a header of HTTP",              `sent Bearer ${secret} to the peer`,                               "sent Bearer [redacted] to the peer"],
    ["a token of Holdfast",           `hft_${secret} is expired`,                                        "[redacted] is expired"],
    ["the secret of a webhook",       `signed by whs_${secret}`,                                         "signed by [redacted]"],
    ["a verifier of PostgreSQL",      `role x SCRAM-SHA-256$4096:${secret}$a:b refused`,                 "role x [redacted] refused"],
    ["a private key",                 `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY----- no`, "[redacted] no"],
    ["a private key that is cut off", `-----BEGIN EC PRIVATE KEY-----\n${secret}`,                       "[redacted]"],
    ["a value in JSON",               `{"password": "${secret} x", "user": "app"} refused`,              `{"password": [redacted], "user": "app"} refused`],
    ["an assignment",                 `ALTER ROLE x, client_secret='${secret}', y`,                      "ALTER ROLE x, client_secret=[redacted], y"],
  ])("hides %s", (_, text, redacted) => {
    expect(errorText(text)).toBe(redacted);
  });

  test("hides a secret that begins before the cut and ends after it", () => {
    const text = errorText(`${"x".repeat(280)} Bearer ${secret.repeat(50)}`);
    expect(text).not.toContain("c2Vj");
    expect(text.length).toBeLessThanOrEqual(300);
  });

  test("is one line of at most 300 characters, without control characters", () => {
    expect(errorText("a\n\tb \u001b[31mred")).toBe("a b [31mred");
    expect(errorText("y".repeat(1_000_000))).toBe(`${"y".repeat(299)}…`);
  });
});
