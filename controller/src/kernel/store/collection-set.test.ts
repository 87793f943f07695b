import { expect, test } from "vitest";
import { createNewestRevision } from "./collection-set.ts";

test("a future revision is refused, and concurrent callers share one query", async () => {
  let queries = 0;
  const answers: ((revision: bigint) => void)[] = [];
  const newest = createNewestRevision({
    revision: () => {
      queries += 1;
      return new Promise((resolve) => answers.push(resolve));
    },
  });
  const wait = async (yields = 5) => {
    for (let n = 0; n < yields; n += 1) await Promise.resolve();
  };
  const first = newest.require(10n);
  const later = Array.from({ length: 100 }, () => newest.require(999_999_999_999_999_999n).catch((error) => error.key));
  const made = newest.require(12n);
  expect(queries).toBe(1);
  answers[0]?.(11n);
  await first;
  await wait(20);
  // Later callers may have seen a change that the first response lacks.
  expect(queries).toBe(2);
  answers[1]?.(12n);
  await made;
  expect(new Set(await Promise.all(later))).toEqual(new Set(["INVALID_REQUEST"]));
  await newest.require(11n);
  expect(queries).toBe(2);
});
