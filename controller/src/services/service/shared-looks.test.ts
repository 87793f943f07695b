import { expect, test } from "vitest";
import { until } from "../../../../test/support/wait-until.ts";
import { createSharedLooks } from "./shared-looks.ts";

const { signal } = new AbortController();

test("who asks the same shares the answer, whoever leaves, and another question is asked anew", async () => {
  const looks = createSharedLooks<string>(60_000);
  const answer = Promise.withResolvers<string>();
  let asked = 0;
  const ask = () => {
    asked += 1;
    return answer.promise;
  };
  const leaving = new AbortController();
  const first = looks.look("service", ask, leaving.signal);
  const others = Array.from({ length: 100 }, () => looks.look("service", ask, signal));
  leaving.abort(new Error("gone"));
  await expect(first).rejects.toThrow("gone");
  answer.resolve("a line");
  expect(new Set(await Promise.all(others))).toEqual(new Set(["a line"]));
  expect(await looks.look("service", ask, signal)).toBe("a line");
  expect(asked).toBe(1);
  await looks.look("another", ask, signal);
  expect(asked).toBe(2);
});

test("a failure is kept for nobody, and an answer not for ever", async () => {
  const looks = createSharedLooks<string>(1);
  await expect(looks.look("service", () => Promise.reject(new Error("away")), signal)).rejects.toThrow("away");
  expect(await looks.look("service", async () => "back", signal)).toBe("back");
  await until(async () => (await looks.look("service", async () => "newer", signal)) === "newer");
});
