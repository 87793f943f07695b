import { randomBytes } from "node:crypto";
import type { Idempotency } from "@holdfast/common/call.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { createSealer } from "../secrets/sealer.ts";
import { createEtcdStore } from "./etcd-store.ts";
import type { StoredResponseLimits } from "./stored-response-budget.ts";
import { createStoredResponses, type StoredResponses } from "./stored-responses.ts";
import type { Store } from "./store.ts";

let etcd: TestEtcd;
let store: Store;
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
});
afterAll(async () => {
  await store?.close();
  await etcd?.stop();
});

const large = { responses: 1_000, bytes: 1_000_000 };

function open(limits: Partial<StoredResponseLimits>, now = () => systemClock.now()): StoredResponses {
  const clock = { ...systemClock, now };
  const all = { principal: large, organization: large, all: large, ...limits };
  const answers = createStoredResponses({ store, sealer, clock, limits: all });
  onTestFinished(() => answers.close());
  return answers;
}

const answer = (body = "{}") => ({ status: 202, headers: {}, body, secret: false });
const request = (key: string, principal: string, organizationId: string): Idempotency => ({
  key,
  scope: `${organizationId} ${principal}`,
  principal,
  organizationId,
  bodyHash: "b",
  encode: () => answer(),
});

/** Outcome once the watch has delivered the stored responses. */
async function untilFull(answers: StoredResponses, idempotency: Idempotency): Promise<unknown> {
  let refusal: unknown;
  await until(() => {
    try {
      answers.reserve(idempotency)();
      return false;
    } catch (error) {
      refusal = error;
      return true;
    }
  });
  return refusal;
}

test("the limit of responses applies per credential across controllers", async () => {
  const limits = { principal: { responses: 3, bytes: 1_000_000 } };
  const [here, there] = [open(limits), open(limits)];
  for (const key of ["1", "2", "3"]) await here.store(request(key, "user:a", "org-a"), answer());
  for (const answers of [here, there]) {
    expect(await untilFull(answers, request("4", "user:a", "org-a"))).toMatchObject({ key: "RATE_LIMITED" });
    answers.reserve(request("4", "user:b", "org-a"))();
  }
  expect(await here.find(request("1", "user:a", "org-a"))).toMatchObject({ status: 202 });
});

test("the limit of bytes applies per organization", async () => {
  const answers = open({ organization: { responses: 1_000, bytes: 20_000 } });
  await answers.store(request("1", "user:c", "org-c"), answer(`"${"x".repeat(30_000)}"`));
  expect(await untilFull(answers, request("2", "user:d", "org-c"))).toMatchObject({ key: "RATE_LIMITED" });
  answers.reserve(request("2", "user:d", "org-d"))();
});

test("a reservation counts, and is released once", () => {
  const answers = open({ principal: { responses: 1, bytes: 1_000 } });
  const release = answers.reserve(request("1", "user:e", "org-e"));
  expect(() => answers.reserve(request("2", "user:e", "org-e"))).toThrow("RATE_LIMITED");
  release();
  release();
  const again = answers.reserve(request("2", "user:e", "org-e"));
  expect(() => answers.reserve(request("3", "user:e", "org-e"))).toThrow("RATE_LIMITED");
  again();
});

test("an expired response releases its space", async () => {
  const limits = { principal: { responses: 1, bytes: 1_000_000 } };
  const answers = open(limits);
  await answers.store(request("1", "user:f", "org-f"), answer());
  await untilFull(answers, request("2", "user:f", "org-f"));
  await open(limits, () => systemClock.now() + 25 * 3_600_000).sweep(AbortSignal.timeout(60_000));
  await until(() => {
    try {
      answers.reserve(request("2", "user:f", "org-f"))();
      return true;
    } catch {
      return false;
    }
  });
});

test("a response above 64 KiB is refused before the change is written", async () => {
  const large = answer("x".repeat(65_537));
  await expect(open({}).store(request("1", "user:g", "org-g"), large)).rejects.toMatchObject({ key: "NOT_POSSIBLE" });
});
