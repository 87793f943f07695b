import { describe, expect, test } from "vitest";
import { emptyState } from "../journal/journal-state.ts";
import { createHoldBook, type HoldRequest, type Taken } from "./hold-book.ts";

function bookOf() {
  const time = { now: 1_000_000 };
  const requests: HoldRequest[] = [];
  const rates = new Map<string, number>();
  const book = createHoldBook(emptyState(), {
    append: async () => undefined,
    now: () => time.now,
    rateOf: (keyId) => rates.get(keyId),
  });
  const connect = (holds: Record<string, number> = {}) =>
    book.welcome(new Map(Object.entries(holds)), (request) => requests.push(request));
  return { book, time, requests, rates, connect };
}

const cost = "cost.o.2026-11";
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a book of holds", () => {
  test("admits by what is held, and asks for all that waits at once", async () => {
    const { book, requests, connect } = bookOf();
    connect({ [cost]: 10 });
    expect(book.take(cost, "o", 8)).toEqual({ kind: "taken" });
    const waiting = [book.take(cost, "o", 5), book.take(cost, "o", 4)] as Promise<Taken>[];
    await nextTurn();
    expect(requests).toEqual([{ account: cost, organizationId: "o", need: 7, least: 4, reserved: 8 }]);
    book.granted(cost, 3, 1);
    expect(await Promise.all(waiting)).toMatchObject([{ kind: "taken" }, { kind: "refused", left: 1 }]);
  });

  test("lets as many requests pass in any 60 s as the rate says", () => {
    const { book, time, rates, connect } = bookOf();
    rates.set("k", 2_000);
    connect({ "rpm.k": 5_000 });
    const start = time.now;
    const passed: number[] = [];
    for (; time.now < start + 200_000; time.now += 10) {
      if (book.take("rpm.k", "o", 1).constructor === Promise) throw new Error("it is held");
      const { left } = book.rate("rpm.k");
      passed.push(left);
      if (left === 0) time.now += book.rate("rpm.k").retryInMs;
    }
    // Full 20 s after the beginning, and again whenever the oldest is 60 s old.
    expect(passed.indexOf(0)).toBe(1_999);
    expect(passed.filter((left) => left === 0).length).toBeGreaterThan(1);
  });

  test("refuses for a moment what controllers refused, until limits change", async () => {
    const { book, requests, connect } = bookOf();
    connect();
    const first = book.take(cost, "o", 5);
    await nextTurn();
    book.granted(cost, 0, 2);
    expect(await first).toMatchObject({ kind: "refused", left: 2 });
    expect(book.take(cost, "o", 5)).toMatchObject({ kind: "refused" });
    book.configured();
    void book.take(cost, "o", 5);
    await nextTurn();
    expect(requests).toHaveLength(2);
  });

  test("lets no more pass in any 60 s than it holds of a rate, and gives back only what it did not use", () => {
    const { book, time, connect } = bookOf();
    connect({ "rpm.k": 3 });
    const take = () => (book.take("rpm.k", "o", 1) as Taken).kind;
    expect([take(), take()]).toEqual(["taken", "taken"]);
    time.now += 59_000;
    expect(book.recalled("rpm.k", 5, false)).toEqual({ amount: 1, reserved: 0 });
    time.now += 999;
    book.alone();
    expect(take()).toBe("unavailable");
    time.now += 1;
    expect([take(), take(), take()]).toEqual(["taken", "taken", "unavailable"]);
  });

  test("goes on alone with what it holds, and takes the controllers' word when they are back", () => {
    const { book, connect } = bookOf();
    connect({ [cost]: 10 });
    book.alone();
    expect(book.take(cost, "o", 10)).toEqual({ kind: "taken" });
    expect(book.take(cost, "o", 1)).toEqual({ kind: "unavailable" });
    connect({ [cost]: 12 });
    expect(book.take(cost, "o", 2)).toEqual({ kind: "taken" });
    book.settle(cost, 10, 4);
    expect(book.recalled(cost, 100, true)).toEqual({ amount: 6, reserved: 2 });
  });
});
