import { getOption } from "@bufbuild/protobuf";
import { Rate, rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { QueueService } from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { expect, test } from "vitest";
import { createConcurrencyLimit } from "./concurrency-limit.ts";
import { type Cost, createRateLimit } from "./rate-limit.ts";

const principal = (id: string, organizationId = "o") =>
  ({ kind: "api_key", id, name: id, organizationId, scopes: new Set<string>() }) as const;
const read: Cost = { rate: "reads", weight: 1 };

function limitAt() {
  const clock = { nowMs: 0, now: () => 0, monotonicMs: () => clock.nowMs };
  const limit = createRateLimit({ reads: 2, changes: 1, messages: 3 }, clock);
  const headers: Record<string, string> = {};
  const take = (id: string, cost = read, organizationId?: string) =>
    limit.take(principal(id, organizationId), cost, (name, value) => (headers[name] = value));
  return { clock, headers, limit, take };
}

test("a credential has a burst of ten seconds' worth, then its rate, and headers have the remainder", () => {
  const { clock, headers, take } = limitAt();
  take("a");
  expect(headers).toEqual({ "ratelimit-limit": "20", "ratelimit-remaining": "19", "ratelimit-reset": "1" });
  for (let n = 0; n < 19; n += 1) take("a");
  expect(() => take("a")).toThrow(expect.objectContaining({ key: "RATE_LIMITED", retryAfterS: 1 }));
  take("b");
  clock.nowMs = 1_000;
  take("a");
  take("a");
  expect(() => take("a")).toThrow("RATE_LIMITED");
  clock.nowMs = 1_000_000;
  for (let n = 0; n < 20; n += 1) take("a");
  expect(() => take("a")).toThrow("RATE_LIMITED");
});

test("changes are counted apart from reads, and expensive calls cost more", () => {
  const { take } = limitAt();
  take("a", { rate: "reads", weight: 19 });
  expect(() => take("a", { rate: "reads", weight: 2 })).toThrow("RATE_LIMITED");
  take("a");
  for (let n = 0; n < 10; n += 1) take("a", { rate: "changes", weight: 1 });
  expect(() => take("a", { rate: "changes", weight: 1 })).toThrow("RATE_LIMITED");
});

test("calls about messages have a rate of their own", () => {
  const { headers, take } = limitAt();
  for (let n = 0; n < 10; n += 1) take("a", { rate: "changes", weight: 1 });
  for (let n = 0; n < 30; n += 1) take("a", { rate: "messages", weight: 1 });
  expect(headers).toMatchObject({ "ratelimit-limit": "30", "ratelimit-remaining": "0" });
  expect(() => take("a", { rate: "messages", weight: 1 })).toThrow("3 calls about messages a second");
  take("a");
});

test("the methods that workers of queues call are charged to the rate of messages", () => {
  const methods = QueueService.methods.filter((method) => getOption(method, rules).rate === Rate.MESSAGES);
  const names = ["EnqueueMessages", "ListMessages", "ClaimMessages", "AckMessages", "NackMessages", "ExtendMessages"];
  expect(methods.map(({ name }) => name)).toEqual(names);
});

test("a body costs more the larger it is, and a small one nothing", () => {
  const { limit, take } = limitAt();
  for (const bytes of [0, 16_384]) limit.takeBody(principal("a"), read, bytes);
  for (let n = 0; n < 4; n += 1) take("a", read);
  limit.takeBody(principal("a"), read, 256 * 1_024);
  take("a", read);
  expect(() => limit.takeBody(principal("a"), read, 16_385)).toThrow("RATE_LIMITED");
  limit.takeBody(principal("b"), read, 16_385);
});

test("credentials of one organization share its rate, apart from other organizations", () => {
  const { take } = limitAt();
  for (let n = 0; n < 100; n += 1) take(`key-${n}`);
  expect(() => take("one-more")).toThrow(expect.objectContaining({ key: "RATE_LIMITED" }));
  take("another", read, "other");
});

test("a call that the organization's rate refuses is not charged to the credential", () => {
  const { clock, take } = limitAt();
  for (let n = 0; n < 100; n += 1) take(`key-${n}`);
  for (let n = 0; n < 20; n += 1) expect(() => take("quiet")).toThrow("All credentials of the organization");
  clock.nowMs = 2_000;
  for (let n = 0; n < 20; n += 1) take("quiet");
});

test("zero is no limit", () => {
  const limit = createRateLimit({ reads: 0, changes: 0, messages: 0 }, { now: () => 0, monotonicMs: () => 0 });
  limit.take(principal("a"), read, () => expect.unreachable());
});

test("concurrency is limited by credential, organization and in all, and released once", () => {
  const limit = createConcurrencyLimit({ credential: 2, organization: 3, all: 4 }, "streams");
  const first = limit.take(principal("a"));
  limit.take(principal("a"));
  expect(() => limit.take(principal("a"))).toThrow("This credential has reached its limit of 2 concurrent streams");
  limit.take(principal("b"));
  expect(() => limit.take(principal("c"))).toThrow("The organization has reached its limit of 3 concurrent streams");
  limit.take(principal("d", "other"));
  expect(() => limit.take(principal("e", "third"))).toThrow(
    "The installation has reached its limit of 4 concurrent streams",
  );
  first();
  first();
  limit.take(principal("e", "third"));
  expect(() => limit.take(principal("f", "third"))).toThrow("The installation");
});
