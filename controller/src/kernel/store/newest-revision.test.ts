import { expect, test } from "vitest";
import { createNewestRevision } from "./newest-revision.ts";

test("a revision that nothing has reached is refused, and many who ask at once are one question", async () => {
  let asked = 0;
  const answers: ((revision: bigint) => void)[] = [];
  const newest = createNewestRevision({
    revision: () => {
      asked += 1;
      return new Promise((resolve) => answers.push(resolve));
    },
  });
  const wait = async (turns = 5) => {
    for (let n = 0; n < turns; n += 1) await Promise.resolve();
  };
  const first = newest.require(10n);
  const later = Array.from({ length: 100 }, () => newest.require(999_999_999_999_999_999n).catch((error) => error.key));
  const made = newest.require(12n);
  expect(asked).toBe(1);
  answers[0]?.(11n);
  await first;
  await wait(20);
  // Those that came meanwhile may know of a change that the first answer did not.
  expect(asked).toBe(2);
  answers[1]?.(12n);
  await made;
  expect(new Set(await Promise.all(later))).toEqual(new Set(["INVALID_REQUEST"]));
  await newest.require(11n);
  expect(asked).toBe(2);
});
