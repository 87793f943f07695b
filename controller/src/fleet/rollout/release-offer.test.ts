import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { createPayloads } from "../payload/payloads.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { AgentRelease } from "./agent-release.ts";
import { type AgentRollout, agentRolloutKind, payloadIdOf, rolloutId } from "./agent-rollout.ts";
import { offerRelease } from "./release-offer.ts";

let etcd: TestEtcd;
let store: Store;
let rollouts: Collection<AgentRollout>;
let directory: string;
const signal = AbortSignal.timeout(120_000);

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  rollouts = createCollection(store, agentRolloutKind);
  directory = await mkdtemp(join(tmpdir(), "offers-"));
});
afterAll(async () => {
  rollouts?.close();
  await store?.close();
  await etcd?.stop();
  await rm(directory, { recursive: true, force: true });
});

function releaseOf(release: string, text: string): AgentRelease {
  const bytes = Buffer.from(text);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { release, digest: sha256.slice(0, 32), bytes, sha256 };
}

async function offer(release: AgentRelease, force = false): Promise<boolean> {
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32)]]) });
  let ids = 0;
  const unit = { outbox: { admit() {} }, sealer, clock: systemClock, ids: () => `id-${(ids += 1)}` };
  const begin = () => createUnitOfWork(store, unit);
  const objects = createDirectoryStore(directory);
  return offerRelease(release, { rollouts, objects, begin, clock: systemClock, log: silentLog }, { force }, signal);
}

const target = () => rollouts.get(rolloutId)?.object.spec.digest;

async function bytesOf({ digest }: AgentRelease): Promise<string | undefined> {
  const payloads = createPayloads(createDirectoryStore(directory), { newId: () => "", maxBytes: 1 });
  const parts = await payloads.read("any-machine", payloadIdOf(digest));
  return parts && Buffer.concat(await Array.fromAsync(parts)).toString();
}

test("controllers of two versions agree on the newer agents, in any order of starts", async () => {
  const [old, next, other] = [releaseOf("1.0.0", "old"), releaseOf("1.1.0", "next"), releaseOf("1.1.0", "other")];
  expect(await offer(old)).toBe(true);
  expect(target()).toBe(old.digest);
  const answers = await Promise.all([offer(next), offer(old), offer(next), offer(old)]);
  expect(answers.filter((is) => is).length).toBeGreaterThanOrEqual(2);
  expect(target()).toBe(next.digest);
  for (let start = 0; start < 3; start += 1) {
    expect(await offer(old)).toBe(false);
    expect(await offer(next)).toBe(true);
  }
  expect(rollouts.get(rolloutId)?.object.metadata.generation).toBe(2);
  // The same release with another digest: the last offer is the target, and the first is not offered again.
  expect(await offer(other)).toBe(true);
  expect(await offer(next)).toBe(false);
  expect(target()).toBe(other.digest);
  // Every machine can download the current and the previous package.
  expect(await bytesOf(other)).toBe("other");
  expect(await bytesOf(next)).toBe("next");
  expect(await bytesOf(old)).toBeUndefined();
  // An operator makes it the target again.
  expect(await offer(old, true)).toBe(true);
  expect(target()).toBe(old.digest);
  expect(await bytesOf(old)).toBe("old");
  expect(rollouts.get(rolloutId)?.object.status).toMatchObject({ state: "Rolling", stage: 0 });
});
