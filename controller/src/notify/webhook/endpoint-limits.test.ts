import { expect, test } from "vitest";
import { createEndpointLimits, isUnhealthyLimit, limitAfter, attemptLimits } from "./endpoint-limits.ts";

const roomy = { total: 1_000, organization: 40, endpoint: 8, starting: 4, perRound: 8, unhealthyShare: 1 / 4 };
const single = { total: 1, organization: 1, endpoint: 1, starting: 1, perRound: 1, unhealthyShare: 1 };

/** Endpoints are named `<organization><number>`. */
const limitsOf = (limits: Partial<typeof roomy> = {}) => createEndpointLimits((id) => id[0], { ...roomy, ...limits });
type Limited = ReturnType<typeof limitsOf>;

/** The capacity of the endpoints if they had due deliveries. */
function capacitiesOf(limited: Limited, ...ids: string[]): [string, number][] {
  for (const id of ids) limited.expect(id, 0);
  const capacities = limited.take(0);
  limited.release(capacities);
  return capacities.map(({ webhookId, capacity }) => [webhookId, capacity]);
}

/** Runs one attempt of the endpoint. */
function attempted(limited: Limited, id: string, succeeded: boolean): void {
  limited.begin(id, "attempt");
  limited.end(id, "attempt", succeeded);
}

test("each endpoint gets its limit, and less when its organization has little capacity", () => {
  const limited = limitsOf({ organization: 12 });
  for (const id of ["a1", "a2", "a3", "b1"]) limited.expect(id, 0);
  expect(limited.take(0)).toEqual([
    { webhookId: "a1", capacity: 3 },
    { webhookId: "a2", capacity: 2 },
    { webhookId: "a3", capacity: 2 },
    { webhookId: "b1", capacity: 3 },
  ]);
});

test.each([
  ["endpoints of an organization", { total: 1_000, organization: 40 }, "a", "a20"],
  ["organizations", { total: 200, organization: 40 }, "abcdef", "g1"],
])("however many %s use all their capacity, another one gets some", (_, limits, organizations, another) => {
  const limited = limitsOf(limits);
  for (let turn = 0; turn < 8; turn += 1)
    for (const organization of organizations)
      for (let n = 0; n < 20; n += 1) limited.tryBegin(`${organization}${n}`, String(turn), 0);
  expect(limited.tryBegin(another, "first", 0)).toBe(true);
});

test("endpoints that use all their capacity in each round leave some for the last one", () => {
  const limited = limitsOf({ organization: 128, endpoint: 16, starting: 16, perRound: 4 });
  const greedy = Array.from({ length: 19 }, (_, n) => `a${n}`);
  for (let turn = 0; turn < 8; turn += 1)
    for (const [id, capacity] of capacitiesOf(limited, ...greedy))
      for (let n = 0; n < capacity; n += 1) limited.begin(id, `${turn} ${n}`);
  expect(capacitiesOf(limited, "a19")).toEqual([["a19", 4]]);
});

test("a served endpoint is the last of the next round", () => {
  const limited = limitsOf(single);
  for (const id of ["a1", "b1", "c1"]) limited.expect(id, 0);
  const served = Array.from({ length: 6 }, () => {
    const capacities = limited.take(0);
    limited.release(capacities);
    const { webhookId } = capacities[0] ?? { webhookId: "" };
    limited.expect(webhookId, 0);
    return webhookId;
  });
  expect(served).toEqual(["a1", "b1", "c1", "a1", "b1", "c1"]);
});

test("an endpoint's limit drops with each failure and grows with each success", () => {
  const limited = limitsOf();
  const capacities = (...outcomes: boolean[]) => {
    for (const outcome of outcomes) attempted(limited, "a1", outcome);
    return capacitiesOf(limited, "a1");
  };
  expect(capacities()).toEqual([["a1", 4]]);
  expect(capacities(false)).toEqual([["a1", 2]]);
  expect(capacities(false)).toEqual([["a1", 1]]);
  expect(capacities(false)).toEqual([["a1", 1]]);
  expect(capacities(true, true, true)).toEqual([["a1", 4]]);
  expect(capacities(true, true, true, true, true, true)).toEqual([["a1", 8]]);
});

test("unhealthy endpoints share a part of the organization's capacity, healthy ones the remainder", () => {
  const limited = limitsOf({ organization: 40, unhealthyShare: 1 / 20 });
  const sick = ["a1", "a2", "a3"];
  for (const id of sick) for (const outcome of [false, false]) attempted(limited, id, outcome);
  expect(capacitiesOf(limited, ...sick)).toEqual([
    ["a1", 1],
    ["a2", 1],
  ]);
  limited.begin("a1", "x");
  limited.begin("a2", "y");
  expect(capacitiesOf(limited, "a1", "a2")).toEqual([]);
  expect(capacitiesOf(limited, "a4")).toEqual([["a4", 4]]);
  limited.end("a1", "x", false);
  expect(capacitiesOf(limited, "a1")).toEqual([["a3", 1]]);
});

test("attempts in flight count as unhealthy while their endpoint is", () => {
  const limited = limitsOf({ organization: 40, unhealthyShare: 1 / 20 });
  for (const id of ["x", "y", "z"]) limited.begin("a1", id);
  for (const outcome of [false, false]) attempted(limited, "a2", outcome);
  limited.end("a1", "x", false);
  expect(capacitiesOf(limited, "a2")).toEqual([]);
  limited.end("a1", "y", true);
  limited.end("a1", "z", true);
  expect(capacitiesOf(limited, "a2")).toEqual([["a2", 1]]);
});

test("endpoints are checked when they are due, and without capacity no wake-up is planned", () => {
  const limited = limitsOf(single);
  limited.expect("a1", 500);
  expect(limited.take(499)).toEqual([]);
  expect(limited.nextAt()).toBe(500);
  limited.begin("b1", "x");
  expect(limited.nextAt()).toBe(Number.POSITIVE_INFINITY);
  limited.end("b1", "x", true);
  expect(limited.take(500)).toEqual([{ webhookId: "a1", capacity: 1 }]);
});

test("an endpoint at its limit is checked again when one of its attempts ends", () => {
  const limited = limitsOf({ starting: 1 });
  limited.begin("a1", "x");
  expect(capacitiesOf(limited, "a1")).toEqual([]);
  expect(limited.nextAt()).toBe(Number.POSITIVE_INFINITY);
  limited.end("a1", "x", false);
  expect(limited.nextAt()).toBe(0);
  expect(capacitiesOf(limited)).toEqual([["a1", 1]]);
});

test("a removed endpoint is not checked again", () => {
  const limited = limitsOf();
  limited.expect("a1", 0);
  limited.remove("a1");
  expect(limited.take(0)).toEqual([]);
});

test("a new delivery starts immediately, unless others wait or are being read, or without capacity", () => {
  const limited = limitsOf();
  expect(limited.tryBegin("a1", "x", 0)).toBe(true);
  expect(limited.inFlight([{ webhookId: "a1", capacity: 1 }])).toEqual(["x"]);
  limited.expect("a1", 500);
  expect(limited.tryBegin("a1", "y", 499)).toBe(true);
  expect(limited.tryBegin("a1", "z", 500)).toBe(false);
  const capacities = limited.take(500);
  expect(capacities).toEqual([{ webhookId: "a1", capacity: 2 }]);
  expect(limited.tryBegin("a1", "z", 500)).toBe(false);
  limited.release(capacities);
  expect(limited.tryBegin("a1", "z", 500)).toBe(true);
  expect(limited.tryBegin("a1", "u", 500)).toBe(true);
  expect(limited.tryBegin("a1", "v", 500)).toBe(false);
  expect(limited.tryBegin("a2", "w", 500)).toBe(true);
});

test("a new delivery to an unhealthy endpoint waits for its round", () => {
  const limited = limitsOf();
  attempted(limited, "a1", false);
  expect(limited.tryBegin("a1", "x", 0)).toBe(false);
});

test.each([
  ["its organization", { organization: 1, starting: 1 }, ["a1", "a2", "a3"]],
  ["all", single, ["a1", "b1", "c1"]],
])(
  "a new delivery does not overtake an endpoint that waits for the capacity of %s",
  (_, limits, [first = "", second = "", third = ""]) => {
    const limited = limitsOf(limits);
    limited.begin(first, "x");
    limited.expect(second, 0);
    expect(limited.take(0)).toEqual([]);
    limited.end(first, "x", true);
    expect(limited.tryBegin(third, "y", 0)).toBe(false);
    expect(limited.take(0)).toEqual([{ webhookId: second, capacity: 1 }]);
  },
);

const after = (limit: number, outcomes: string) =>
  Array.from(outcomes).reduce((now, outcome) => limitAfter(now, outcome === "+", attemptLimits), limit);

test.each([
  ["grows by one with each success", 4, "+++", 7],
  ["is capped at 16", 15, "+++", 16],
  ["is halved by each failure", 16, "--", 4],
  ["is never zero", 16, "-----------", 1],
  ["is one after all attempts of a full endpoint hung", 16, "-".repeat(16), 1],
  ["stays low when each second attempt hangs", 16, "-+".repeat(20), 2],
  ["is nearly full when one in fifty hangs", 16, `-${"+".repeat(49)}`, 16],
  ["grows from one to full by successes", 1, "+".repeat(15), 16],
])("a limit %s", (_, limit, outcomes, expected) => {
  expect(after(limit, outcomes)).toBe(expected);
});

test("an endpoint is unhealthy from its first failure until its limit exceeds the initial one", () => {
  const { starting } = attemptLimits;
  expect(isUnhealthyLimit(starting, attemptLimits)).toBe(false);
  expect(isUnhealthyLimit(after(starting, "-"), attemptLimits)).toBe(true);
  expect(isUnhealthyLimit(after(starting, "-+"), attemptLimits)).toBe(true);
  expect(isUnhealthyLimit(after(starting, "-++"), attemptLimits)).toBe(false);
});
