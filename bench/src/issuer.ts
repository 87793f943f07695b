import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { parseArgs } from "node:util";
import { Agent, request } from "undici";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { platformAgent } from "@holdfast/testing/network/browser.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { createSignInUnderTest } from "@holdfast/test/system/sign-in/sign-in-under-test.ts";
import { median, ms, percentile, print, ratios, times } from "./support/figures.ts";
import { cpuMsOf, printHost } from "./support/host.ts";
import { pin, serverCore, startPeer } from "./support/peer-process.ts";

// Refreshes at an app's issuer beside oidc-provider with a plain adapter on the same database, alternating on one core:
// requests per second of CPU, and the share of the two signatures of each, by `openssl speed` on the same core.
const { values } = parseArgs({
  options: {
    pairs: { type: "string", default: "5" },
    requests: { type: "string", default: "2000" },
    users: { type: "string", default: "16" },
  },
});
const [pairs, requests, users] = [Number(values.pairs), Number(values.requests), Number(values.users)];
const signatures = 2;

printHost();
const fixture = createSignInUnderTest();
try {
  await fixture.start();
  const { issuer_url: issuer } = await fixture.enable();
  const tokens: string[] = [];
  for (let n = 0; n < users; n += 1) tokens.push((await fixture.signIn(`user${n}@example.com`)).refresh_token ?? "");
  const issuerPid = fixture.platform.processes().issuer ?? 0;
  pin(issuerPid, serverCore);

  const { cert, key } = await createTestCertificate(undefined, "127.0.0.1");
  const [port = 0] = await freePorts(1);
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const { connection, password } = fixture.users;
  const [address = ""] = await resolveName(fixture.platform.admin.dns_server, connection.host);
  const peer = await startPeer("oidc-provider", {
    database: {
      host: address,
      port: connection.port,
      user: connection.user,
      password,
      database: connection.database,
      ssl: { ca: fixture.platform.ca, rejectUnauthorized: false },
    },
    key,
    cert,
    port,
    jwk: { ...privateKey.export({ format: "jwk" }), alg: "RS256", use: "sig", kid: "key" },
    clientId: fixture.appId,
  });
  const peerTokens = await peer.query<string[]>({ query: "tokens", count: users });
  const sides = {
    holdfast: { url: `${issuer}/token`, pid: issuerPid, tokens, dispatcher: platformAgent(fixture.platform) },
    peer: {
      url: `https://127.0.0.1:${port}/token`,
      pid: peer.pid,
      tokens: peerTokens,
      dispatcher: new Agent({ connect: { ca: cert } }),
    },
  };

  /**
   * Each user refreshes sequentially, all users concurrently; returns requests per second of CPU, and each duration.
   */
  async function measure({ url, pid, tokens, dispatcher }: (typeof sides)["holdfast"]) {
    const taken: number[] = [];
    const began = cpuMsOf(pid);
    await Promise.all(
      tokens.map(async (_, user) => {
        for (let n = 0; n < requests / users; n += 1) {
          const startedAt = performance.now();
          const answer = await request(url, {
            dispatcher,
            method: "POST",
            headers: { "content-type": "application/x-www-form-urlencoded" },
            body: new URLSearchParams({
              client_id: fixture.appId,
              grant_type: "refresh_token",
              refresh_token: tokens[user] ?? "",
            }).toString(),
          });
          const body = (await answer.body.json()) as Record<string, string>;
          if (
            answer.statusCode !== 200 ||
            body["id_token"] === undefined ||
            body["access_token"]?.split(".").length !== 3
          )
            throw new Error(`${url} answered ${answer.statusCode}: ${JSON.stringify(body)}`);
          tokens[user] = body["refresh_token"] ?? "";
          taken.push(performance.now() - startedAt);
        }
      }),
    );
    return { perCpuS: (taken.length * 1_000) / (cpuMsOf(pid) - began), taken };
  }

  await measure(sides.holdfast);
  await measure(sides.peer);
  const found = { holdfast: [] as number[], peer: [] as number[], shares: [] as number[], taken: [] as number[] };
  for (let pair = 0; pair < pairs; pair += 1) {
    const signsPerS = opensslSigns();
    const { perCpuS, taken } = await measure(sides.holdfast);
    found.holdfast.push(perCpuS);
    found.taken.push(...taken);
    found.peer.push((await measure(sides.peer)).perCpuS);
    found.shares.push((perCpuS * signatures) / signsPerS);
  }
  const ratio = ratios(found.holdfast, found.peer);
  print("refreshes a second of CPU, Holdfast", median(found.holdfast).toFixed(0));
  print("refreshes a second of CPU, oidc-provider", median(found.peer).toFixed(0));
  print("  ratio; min to max", `${times(ratio.median)}; ${times(ratio.min)} to ${times(ratio.max)}`, ">= 1.5x");
  print("  signatures of openssl speed rsa2048", median(found.shares).toFixed(2), ">= 0.80");
  print("  p50; p99 with all users concurrently", `${ms(median(found.taken))}; ${ms(percentile(found.taken, 0.99))}`);
  await peer.end();
} finally {
  await fixture.remove();
}

/** Signatures per second, on the servers' core. */
function opensslSigns(): number {
  const speed = ["--cpu-list", String(serverCore), "openssl", "speed", "-seconds", "2", "rsa2048"];
  const text = execFileSync("taskset", speed, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const line = /^rsa 2048 bits\s.*$/m.exec(text)?.[0] ?? "";
  return Number(
    line
      .trim()
      .split(/\s+/)
      .find((word) => /^\d+\.\d$/.test(word)) ?? Number.NaN,
  );
}
