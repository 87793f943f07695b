import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { silentLog } from "@holdfast/common/log.ts";
import { type ApiKey, apiKeyKind, hashPurposes } from "@holdfast/controller/access/credential/credential.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { keyOf } from "@holdfast/controller/kernel/store/resource.ts";
import { startTestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { basic, createRest } from "@holdfast/testing/api/rest.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { median, ms, print, ratios, times } from "./support/figures.ts";
import { cpuMsOf, printHost } from "./support/host.ts";
import { startPeer } from "./support/peer-process.ts";
import { load } from "./support/wrk.ts";
import { organizationKind } from "@holdfast/controller/access/organization/organization.ts";

// Cost of authentication: a GET behind the real authenticator, rate limit and scope check, with its keys in a real
// etcd, against the same GET of the same gateway whose proto requires no credential.
const { values } = parseArgs({
  options: {
    pairs: { type: "string", default: "7" },
    seconds: { type: "string", default: "3" },
    keys: { type: "string", default: "1000" },
  },
});
const seconds = Number(values.seconds);
const connections = 32;
const organizationId = "organization-bench";
const path = "/managed-services/bench";

printHost();
const etcd = await startTestEtcd();
const masterKey = randomBytes(32);
const store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
const directory = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
// wrk runs as another user.
chmodSync(directory, 0o755);
try {
  const keys = await makeKeys(Number(values.keys));
  const headersFile = join(directory, "headers");
  writeFileSync(headersFile, keys.map(({ authorization }) => `${authorization}\n`).join(""));

  const { cert, key } = await createTestCertificate();
  const settings = { key, cert, etcd: etcd.url, masterKey: masterKey.toString("base64") };
  const guarded = await startPeer("gateway", { ...settings, isPublic: false });
  const open = await startPeer("gateway", { ...settings, isPublic: true });
  const urlOf = (peer: typeof open) => `https://localhost:${peer.ready["port"]}${path}`;
  const [first, second] = keys;
  if (first === undefined || second === undefined) throw new Error("at least two keys are needed");
  const one = { authorization: first.authorization };
  const arms = {
    open: { peer: open, ask: () => load(urlOf(open), one, connections, seconds) },
    "one key": { peer: guarded, ask: () => load(urlOf(guarded), one, connections, seconds) },
    "keys in turn": { peer: guarded, ask: () => load(urlOf(guarded), {}, connections, seconds, headersFile) },
  };
  const names = Object.keys(arms) as (keyof typeof arms)[];
  const rate = { open: [] as number[], "one key": [] as number[], "keys in turn": [] as number[] };
  const cpuUs = { open: [] as number[], "one key": [] as number[], "keys in turn": [] as number[] };
  // The first round is a warm-up.
  for (let pair = 0; pair <= Number(values.pairs); pair += 1) {
    for (const name of names) {
      const { peer, ask } = arms[name];
      const before = cpuMsOf(peer.pid);
      const { requests, perSecond } = await ask();
      if (pair === 0) continue;
      rate[name].push(perSecond);
      cpuUs[name].push(((cpuMsOf(peer.pid) - before) * 1_000) / requests);
    }
  }
  for (const name of names)
    print(name, `${median(rate[name]).toFixed(0)}/s, ${median(cpuUs[name]).toFixed(0)} us CPU each`);
  for (const name of ["one key", "keys in turn"] as const) {
    const [inRate, inCpu] = [ratios(rate[name], rate.open), ratios(cpuUs.open, cpuUs[name])];
    print(
      `${name} to open, requests (min - max)`,
      `${times(inRate.median)} (${times(inRate.min)} - ${times(inRate.max)})`,
      ">= 0.9x",
    );
    print(`${name} to open, CPU (min - max)`, `${times(inCpu.median)} (${times(inCpu.min)} - ${times(inCpu.max)})`);
  }

  // Correctness: a call without key or scope is refused, and a deleted key is refused while it is in use.
  const rest = createRest({
    baseUrl: `https://localhost:${guarded.ready["port"]}`,
    ca: cert,
    authorization: undefined,
  });
  const statusAs = async (authorization?: string) => (await rest.as(authorization).get(path)).status;
  if ((await statusAs()) !== 401) throw new Error("a request without credential was answered");
  if ((await statusAs(second.authorization)) !== 200) throw new Error("a good key was refused");
  const revokedAt = performance.now();
  await store.commit({ conditions: [], puts: [], deletes: [keyOf(apiKeyKind, second.id)] });
  await waitUntil("the revoked key is refused", async () => (await statusAs(second.authorization)) === 401, {
    everyMs: 1,
  });
  print("revoked in etcd to refused", ms(performance.now() - revokedAt), "<= 1 s");
  rest.close();
  await Promise.all([guarded, open].map((peer) => peer.end()));
} finally {
  await store.close();
  await etcd.stop();
  rmSync(directory, { recursive: true, force: true });
}

/** Keys of one organization with read scope, in the API's format. */
async function makeKeys(count: number): Promise<{ id: string; authorization: string }[]> {
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", masterKey]]) });
  const metadata = { organizationId, generation: 1, createdAt: 0, updatedAt: 0 };
  const organization = {
    metadata: { ...metadata, id: organizationId, name: "bench" },
    spec: { quota: {} },
    status: {},
  };
  const puts = [{ key: keyOf(organizationKind, organizationId), value: JSON.stringify(organization) }];
  const keys = Array.from({ length: count }, () => {
    const id = `hfk_${randomBytes(12).toString("hex")}`;
    const secret = `hfs_${randomBytes(24).toString("base64url")}`;
    const secretHash = sealer.keyedHash(hashPurposes.apiKey, secret);
    const object: ApiKey = {
      metadata: { ...metadata, id, name: id },
      spec: { secretHash, scopes: ["services:read"], expiresAt: null },
      status: {},
    };
    puts.push({ key: keyOf(apiKeyKind, id), value: JSON.stringify(object) });
    return { id, authorization: basic(id, secret) };
  });
  for (let from = 0; from < puts.length; from += 100)
    await store.commit({ conditions: [], puts: puts.slice(from, from + 100), deletes: [] });
  return keys;
}
