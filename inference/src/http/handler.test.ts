import { createHash, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { costAccount, periodOf } from "@holdfast/common/inference/accounts.ts";
import { type Log, silentLog } from "@holdfast/common/log.ts";
import { ConfigurationSchema } from "@holdfast/proto/holdfast/inference/v1/feed_pb.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { RoutedCall } from "../call/serve-call.ts";
import { createConfiguration } from "../configuration/configuration.ts";
import { createAccounting } from "../quota-lease/accounting.ts";
import { createQuotaLeases } from "../quota-lease/quota-leases.ts";
import { openUsageJournal } from "../journal/journal.ts";
import { createMetrics } from "../metrics.ts";
import { createHandler } from "./handler.ts";
import { createBodyBudget } from "./read-body.ts";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";

const organizationId = "o";
const keyId = randomUUID();
const secret = `inf_${keyId}_${"s".repeat(32)}`;

let directory: string;
let server: Server;
let logged: string[];
/** Calls that would be sent to a provider; only this part of the process resolves names and opens sockets. */
let served: RoutedCall[];
let release: () => void;

async function serve(euOnly: boolean): Promise<string> {
  const note = (message: string) => void logged.push(message);
  const log: Log = { ...silentLog, info: note, warn: note, error: note };
  const configuration = createConfiguration();
  const secretHash = createHash("sha256").update(secret).digest();
  configuration.apply(
    create(ConfigurationSchema, {
      revision: 1n,
      synced: true,
      keys: [{ id: keyId, organizationId, secretHash }],
      organizations: [
        {
          organizationId,
          monthlyLimitMicrocents: 1_000_000_000_000n,
          euOnly,
          providers: [
            { name: "provider_a", enabled: true, apiKey: "k", baseUrl: "https://models.test", euEndpoint: true },
            { name: "provider_c", enabled: true, apiKey: "k", baseUrl: "https://models.test", euEndpoint: false },
            { name: "provider_d", enabled: true, apiKey: "k", baseUrl: "https://models.test", euEndpoint: true },
          ],
        },
      ],
    }),
  );
  const journal = openUsageJournal(directory, { now: Date.now, log });
  const quotaLeases = createQuotaLeases(journal.state, {
    append: journal.append,
    now: Date.now,
    rateOf: () => undefined,
  });
  const account = costAccount(organizationId, periodOf(Date.now()));
  quotaLeases.connected(new Map([[account, 1_000_000_000_000]]), () => undefined);
  const accounting = createAccounting({ quotaLeases, journal, now: Date.now, newId: randomUUID });
  const none = { inFlight: () => 0, abandonedCalls: () => 0, journalBytes: () => 0, isConnected: () => true };
  const waiting = Promise.withResolvers<void>();
  release = waiting.resolve;
  const handler = createHandler({
    configuration,
    accounting,
    quotaLeases,
    bodyBudget: createBodyBudget(),
    metrics: createMetrics(none),
    async serve(routed, client) {
      served.push(routed);
      await waiting.promise;
      client.json("{}");
    },
    mayAdmit: () => true,
    now: Date.now,
    log,
  });
  server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`;
}

async function call(url: string, model: string): Promise<unknown[]> {
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}` },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "x" }], max_tokens: 1 }),
  });
  const { error } = (await response.json()) as { error?: { code: string } };
  return [response.status, error?.code];
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "inference-handler-"));
  logged = [];
  served = [];
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(directory, { recursive: true, force: true });
});

test("a call that must stay in the EU is refused before routing, without a log line", async () => {
  const url = await serve(true);
  release();
  const refused = [403, "eu_residency_unavailable"];
  expect(await call(url, "provider_a/m")).toEqual(refused);
  expect(await call(url, "provider_c/m")).toEqual(refused);
  expect(served).toEqual([]);
  expect(await call(url, "provider_d/m")).toEqual([200, undefined]);
  expect(served.map(({ route }) => route.url)).toEqual(["https://models.test/chat/completions"]);
  expect(logged).toEqual([]);
});

test("a key has at most 100 calls in flight", async () => {
  const url = await serve(false);
  const calls = Array.from({ length: 110 }, () =>
    call(url, "provider_c/m").then((end) => {
      // Refused calls end while the others wait.
      if (end[0] === 429) refusals.push(end);
      if (refusals.length === 10) release();
      return end;
    }),
  );
  const refusals: unknown[][] = [];
  const ends = await Promise.all(calls);
  expect(ends.filter(([status]) => status === 200)).toHaveLength(100);
  expect(refusals).toEqual(Array.from({ length: 10 }, () => [429, "rate_limited"]));
  expect(served).toHaveLength(100);
});

test("a compressed body is 415, and the message names its coding", async () => {
  const url = await serve(false);
  const headers = { authorization: `Bearer ${secret}`, "content-encoding": "gzip" };
  const response = await fetch(url, { method: "POST", headers, body: Buffer.from([0x1f, 0x8b, 8, 0]) });
  expect(response.status).toBe(415);
  const message = "The body has the Content-Encoding gzip; send it uncompressed.";
  expect(await response.json()).toMatchObject({ error: { code: "unsupported_encoding", message } });
  expect(served).toEqual([]);
});

test("deeply nested JSON is 400 at any depth, without a log line", async () => {
  const url = await serve(false);
  release();
  for (const depth of [101, 200_000]) {
    const nested = "[".repeat(depth) + "]".repeat(depth);
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}` },
      body: `{"model":"provider_c/m","messages":[{"role":"user","content":"x"}],"metadata":${nested}}`,
    });
    expect([response.status, await response.json()]).toMatchObject([400, { error: { code: "invalid_model" } }]);
  }
  expect(logged).toEqual([]);
});

test("inherited property names are not paths, methods, models or members", async () => {
  const url = await serve(false);
  release();
  const authorization = `Bearer ${secret}`;
  for (const word of inheritedNames) {
    expect((await fetch(new URL(`/${word}`, url))).status).toBe(404);
    expect((await fetch(new URL(`/v1/${word}`, url), { headers: { authorization: `Bearer ${word}` } })).status).toBe(
      404,
    );
    expect((await fetch(url, { method: "OPTIONS", headers: { [word]: word } })).headers.get("allow")).toBe("POST");
    expect(await call(url, `${word}/m`)).toEqual([412, "provider_not_configured"]);
    expect(await call(url, `provider_c/${word}`)).toEqual([200, undefined]);
    const body = `{"model":"provider_c/m","messages":[{"role":"user","content":"x"}],"${word}":1}`;
    expect((await fetch(url, { method: "POST", headers: { authorization }, body })).status).toBe(200);
  }
  expect(logged).toEqual([]);
});
