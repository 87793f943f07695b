import { randomBytes } from "node:crypto";
import type { Idempotency } from "@holdfast/common/call.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "../../../../test/support/controller/etcd.ts";
import { until } from "../../../../test/support/wait-until.ts";
import { createSealer } from "../secrets/sealer.ts";
import { createEtcdStore } from "./etcd-store.ts";
import type { KeptAnswerLimits } from "./kept-answer-room.ts";
import { createKeptAnswers, type KeptAnswers } from "./kept-answers.ts";
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

const large = { answers: 1_000, bytes: 1_000_000 };

function open(limits: Partial<KeptAnswerLimits>, now = () => systemClock.now()): KeptAnswers {
  const clock = { ...systemClock, now };
  const all = { principal: large, organization: large, all: large, ...limits };
  const answers = createKeptAnswers({ store, sealer, clock, limits: all });
  onTestFinished(() => answers.close());
  return answers;
}

const answer = (body = "{}") => ({ status: 202, headers: {}, body, secret: false });
const asked = (key: string, principal: string, organizationId: string): Idempotency => ({
  key,
  scope: `${organizationId} ${principal}`,
  principal,
  organizationId,
  bodyHash: "b",
  encode: () => answer(),
});

/** Room as it is told once the watch has shown what was kept. */
async function untilFull(answers: KeptAnswers, idempotency: Idempotency): Promise<unknown> {
  let refusal: unknown;
  await until(() => {
    try {
      answers.take(idempotency)();
      return false;
    } catch (error) {
      refusal = error;
      return true;
    }
  });
  return refusal;
}

test("a credential has room for so many answers, on whichever controller, and others have theirs", async () => {
  const limits = { principal: { answers: 3, bytes: 1_000_000 } };
  const [here, there] = [open(limits), open(limits)];
  for (const key of ["1", "2", "3"]) await here.keep(asked(key, "user:a", "org-a"), answer());
  for (const answers of [here, there]) {
    expect(await untilFull(answers, asked("4", "user:a", "org-a"))).toMatchObject({ key: "RATE_LIMITED" });
    answers.take(asked("4", "user:b", "org-a"))();
  }
  expect(await here.find(asked("1", "user:a", "org-a"))).toMatchObject({ status: 202 });
});

test("an organization has room for so many bytes", async () => {
  const answers = open({ organization: { answers: 1_000, bytes: 20_000 } });
  await answers.keep(asked("1", "user:c", "org-c"), answer(`"${"x".repeat(30_000)}"`));
  expect(await untilFull(answers, asked("2", "user:d", "org-c"))).toMatchObject({ key: "RATE_LIMITED" });
  answers.take(asked("2", "user:d", "org-d"))();
});

test("what is on its way takes room, and gives it back once", () => {
  const answers = open({ principal: { answers: 1, bytes: 1_000 } });
  const giveBack = answers.take(asked("1", "user:e", "org-e"));
  expect(() => answers.take(asked("2", "user:e", "org-e"))).toThrow("RATE_LIMITED");
  giveBack();
  giveBack();
  const again = answers.take(asked("2", "user:e", "org-e"));
  expect(() => answers.take(asked("3", "user:e", "org-e"))).toThrow("RATE_LIMITED");
  again();
});

test("an answer of a day ago makes room when it goes", async () => {
  const limits = { principal: { answers: 1, bytes: 1_000_000 } };
  const answers = open(limits);
  await answers.keep(asked("1", "user:f", "org-f"), answer());
  await untilFull(answers, asked("2", "user:f", "org-f"));
  await open(limits, () => systemClock.now() + 25 * 3_600_000).sweep(AbortSignal.timeout(60_000));
  await until(() => {
    try {
      answers.take(asked("2", "user:f", "org-f"))();
      return true;
    } catch {
      return false;
    }
  });
});

test("an answer above 64 KiB is refused before the change is written", async () => {
  const large = answer("x".repeat(65_537));
  await expect(open({}).keep(asked("1", "user:g", "org-g"), large)).rejects.toMatchObject({ key: "NOT_POSSIBLE" });
});
