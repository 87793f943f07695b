import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { createInferenceCallers } from "@holdfast/testing/platform/inference-callers.ts";
import { startInferenceProcess } from "@holdfast/testing/platform/inference-process.ts";
import { createOrganizations } from "@holdfast/testing/platform/organizations.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { Agent, request } from "undici";
import { startPortkey } from "./peers/portkey.ts";
import { median, ms, print, ratios, times } from "./support/figures.ts";
import { cpuMsOf, memoryOf, printHost } from "./support/host.ts";
import { loadCore, pin, serverCore, startPeer } from "./support/peer-process.ts";
import { loadPosts } from "./support/wrk.ts";

// Chats through the proxy with all of its rules on, over plain HTTP and over TLS, against Portkey's gateway and a naive
// Node proxy, each on one core; provider and load share the other one. Added latency is relative to the provider
// itself.
const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "4" } },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
const connections = 32;
const usage = { prompt_tokens: 12, completion_tokens: 20, total_tokens: 32 };
const chunks = 100;

const arms = ["holdfast", "holdfast, TLS", "portkey", "naive"] as const;
type Arm = (typeof arms)[number];

printHost();
const directory = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
// wrk runs as another user.
chmodSync(directory, 0o755);
const { cert, key } = await createTestCertificate();
const platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
const organizations = createOrganizations(platform);
const fixture = createInferenceCallers(platform, await organizations.first());
try {
  const body = { messages: [{ role: "user", content: "What is a latch, and what is it good for?" }], max_tokens: 64 };
  const file = (name: string, text: string) => {
    const path = join(directory, name);
    writeFileSync(path, text);
    return path;
  };
  const posted = (model: string, stream: boolean) =>
    file(`${model.replace("/", "-")}-${stream}`, JSON.stringify({ model, ...body, ...(stream && { stream }) }));
  const choices = [
    { index: 0, message: { role: "assistant", content: "A latch holds a door." }, finish_reason: "stop" },
  ];
  const answer = JSON.stringify({ id: "c", object: "chat.completion", created: 1, model: "m", choices, usage });
  const event = (more: object) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", ...more })}\n\n`;
  const delta = event({ choices: [{ index: 0, delta: { content: "word " }, finish_reason: null }] });
  const stream = `${delta.repeat(chunks)}${event({ choices: [], usage })}data: [DONE]\n\n`;

  const upstream = await startPeer("model-upstream", { key, cert, answer, stream }, loadCore);
  const origin = `https://127.0.0.1:${upstream.ready["port"]}`;
  await fixture.put("providers", {
    provider: "provider_c",
    api_key: "k",
    base_url: `${origin}/v1`,
    ca_certificate: cert,
  });
  await fixture.put("settings", { monthly_cost_limit_cents: 1_000_000_000 });
  const { secret } = await fixture.newKey({ rate_limit_rpm: 1_000_000, monthly_token_limit: 1_000_000_000_000 });

  const plain = await startInferenceProcess(platform, { HOLDFAST_INFERENCE_PLAIN: "yes" });
  const naive = await startPeer("naive-proxy", { upstream: origin, ca: cert });
  const portkey = await startPortkey(file("ca.pem", cert));
  const { inference = 0 } = platform.processes();
  for (const pid of [plain.pid, inference]) pin(pid, serverCore);

  const urls: Readonly<Record<Arm | "direct", string>> = {
    holdfast: `${plain.url}/chat/completions`,
    "holdfast, TLS": `${platform.admin.inference_url}/chat/completions`,
    portkey: `${portkey.url}/v1/chat/completions`,
    naive: `http://127.0.0.1:${naive.ready["port"]}/v1/chat/completions`,
    direct: `${origin}/v1/chat/completions`,
  };
  const ownHeaders = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
  const headers: Readonly<Record<Arm | "direct", Record<string, string>>> = {
    holdfast: ownHeaders,
    "holdfast, TLS": ownHeaders,
    portkey: {
      authorization: "Bearer k",
      "content-type": "application/json",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `${origin}/v1`,
    },
    naive: { "content-type": "application/json" },
    direct: { "content-type": "application/json" },
  };
  const pids: Readonly<Record<Arm, number>> = {
    holdfast: plain.pid,
    "holdfast, TLS": inference,
    portkey: portkey.pid,
    naive: naive.pid,
  };
  const modelOf = (arm: Arm | "direct") => (arm.startsWith("holdfast") ? "provider_c/m" : "m");
  const lists = () => Object.fromEntries(arms.map((arm) => [arm, [] as number[]])) as Record<Arm, number[]>;
  const [perSecond, cpuUs, p50, p99, streams, chunkUs] = [lists(), lists(), lists(), lists(), lists(), lists()];
  let holdfastRequests = 0;
  let ofStreams = 0;

  const trusting = new Agent({ connect: { ca: [platform.ca, cert] } });
  const checkAnswer = async (arm: Arm | "direct") => {
    const requested = JSON.stringify({ model: modelOf(arm), ...body });
    const answered = await request(urls[arm], {
      method: "POST",
      headers: headers[arm],
      body: requested,
      dispatcher: trusting,
    });
    const text = await answered.body.text();
    if (answered.statusCode !== 200 || !text.includes("A latch holds a door."))
      throw new Error(`${arm} answers ${answered.statusCode}: ${text}`);
  };
  for (const arm of ["direct", ...arms] as const) await checkAnswer(arm);

  // The first round is a warm-up.
  for (let round = 0; round <= rounds; round += 1) {
    const at = (arm: Arm | "direct", most: number, isStream = false) =>
      loadPosts(urls[arm], headers[arm], most, seconds, posted(modelOf(arm), isStream)).catch(
        async (error: unknown) => {
          // The current response explains more than the number of wrong ones.
          await checkAnswer(arm);
          throw new Error(`${arm} was not right under load`, { cause: error });
        },
      );
    const direct = await at("direct", 1);
    for (const arm of arms) {
      const cpuBefore = cpuMsOf(pids[arm]);
      const full = await at(arm, connections);
      const cpu = cpuMsOf(pids[arm]) - cpuBefore;
      const alone = await at(arm, 1);
      const streamsBefore = cpuMsOf(pids[arm]);
      // Portkey does not stream successfully from this provider.
      const streamed = arm === "portkey" ? undefined : await at(arm, connections, true);
      const streamCpu = cpuMsOf(pids[arm]) - streamsBefore;
      if (arm.startsWith("holdfast")) {
        holdfastRequests += full.requests + alone.requests + (streamed?.requests ?? 0);
        ofStreams += streamed?.requests ?? 0;
      }
      if (round === 0) continue;
      perSecond[arm].push(full.perSecond);
      cpuUs[arm].push((cpu * 1_000) / full.requests);
      p50[arm].push(Math.max(0.001, alone.p50Ms - direct.p50Ms));
      p99[arm].push(Math.max(0.001, alone.p99Ms - direct.p99Ms));
      if (streamed === undefined) continue;
      streams[arm].push(streamed.perSecond);
      chunkUs[arm].push((streamCpu * 1_000) / (streamed.requests * chunks));
    }
  }

  for (const arm of arms) {
    print(
      `${arm}: requests a second`,
      `${median(perSecond[arm]).toFixed(0)} (${median(cpuUs[arm]).toFixed(0)} us CPU)`,
    );
    print("  added p50; p99", `${ms(median(p50[arm]))}; ${ms(median(p99[arm]))}`);
    const each =
      streams[arm].length === 0
        ? "none"
        : `${median(streams[arm]).toFixed(0)} (${median(chunkUs[arm]).toFixed(1)} us CPU a chunk)`;
    print(`  streams of ${chunks} chunks a second`, each);
    print("  memory, RSS", `${memoryOf(pids[arm]).rssMb.toFixed(0)} MB`);
  }
  const printed = ({ median: middle, min, max }: ReturnType<typeof ratios>) =>
    `${times(middle)} (${times(min)} - ${times(max)})`;
  for (const arm of ["holdfast", "holdfast, TLS"] as const) {
    print(`${arm} to Portkey: requests a second`, printed(ratios(perSecond[arm], perSecond.portkey)), ">= 6x");
    print("  added p50", printed(ratios(p50[arm], p50.portkey)), "<= 0.35x");
    print("  added p99", printed(ratios(p99[arm], p99.portkey)), "<= 0.35x");
    print("  to the naive proxy: requests a second", printed(ratios(perSecond[arm], perSecond.naive)), ">= 0.65x");
  }

  // The provider reports constant usage. wrk abandons requests at its end, which are charged too.
  const { items } = await waitUntil(
    "usage has all calls",
    async () => {
      const found = await fixture.usage("model");
      return found.total.requests >= holdfastRequests && found;
    },
    { withinMs: 60_000 },
  );
  const [item] = items;
  if (item === undefined || item.estimated_requests > 2 * connections * (rounds + 1))
    throw new Error(`usage is not what the provider told: ${JSON.stringify(items)}`);
  const exact = item.requests - item.estimated_requests;
  if (item.prompt_tokens < exact * usage.prompt_tokens || item.completion_tokens < exact * usage.completion_tokens)
    throw new Error(`tokens are missing: ${JSON.stringify(item)}`);
  const refused = await request(urls["holdfast, TLS"], { method: "POST", body: "{}", dispatcher: trusting });
  await trusting.destroy();
  if (refused.statusCode !== 401) throw new Error("a call without a key was answered");
  print("correctness", `${item.requests} calls in usage, ${ofStreams} of them streams; 401 without a key`);
  portkey.end();
  await plain.remove();
  await Promise.all([upstream, naive].map((peer) => peer.end()));
} finally {
  await fixture.close();
  organizations.close();
  await platform.remove();
  rmSync(directory, { recursive: true, force: true });
}
