import { randomUUID } from "node:crypto";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { silentLog } from "@holdfast/common/log.ts";
import { createAddressPolicy } from "@holdfast/egress/address-policy.ts";
import { createEgressClient } from "@holdfast/egress/egress-client.ts";
import { createResolveName } from "@holdfast/egress/resolve-name.ts";
import { expect, onTestFinished, test } from "vitest";
import { createClientResponse } from "../http/client-response.ts";
import type { Used } from "../journal/journal-state.ts";
import { createMetrics } from "../metrics.ts";
import { checkCall } from "./check-call.ts";
import { createAbandonedCalls } from "./abandoned-calls.ts";
import { serveCall } from "./serve-call.ts";

const apiKey = "sk-planted-c0ffee";
const metrics = createMetrics({
  inFlight: () => 0,
  abandonedCalls: () => 0,
  journalBytes: () => 0,
  isConnected: () => true,
});
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const delta = event({ id: "c", choices: [{ index: 0, delta: { content: "Hello" } }] });
const finish = event({ id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
const usage = { prompt_tokens: 11, completion_tokens: 3, total_tokens: 14 };
const completion = { choices: [{ index: 0, message: { role: "assistant", content: "Hello" } }], usage };

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Serves one call by a provider that responds so; `charged` is undefined if the call costs nothing. */
async function served(respond: (response: ServerResponse) => void, { isStream = false, silenceMs = 60_000 } = {}) {
  const provider = await listening(
    createServer((request, response) => request.resume().once("end", () => respond(response))),
  );
  const own = { host: () => [], listeners: () => [], machineNetworks: () => [] };
  const egress = createEgressClient({
    policy: createAddressPolicy(["127.0.0.0/8"], own),
    resolve: createResolveName(),
  });
  onTestFinished(() => egress.close());
  const body = { model: "provider_c/m", messages: [{ role: "user", content: "x" }], max_tokens: 20, stream: isStream };
  const call = checkCall("chat", JSON.stringify(body));
  if ("status" in call) throw new Error(call.message);
  const charged: Used[] = [];
  const tokens = { promptTokens: 11, completionTokens: 20, costMicrocents: 31, amounts: [] };
  const reservation = {
    id: randomUUID(),
    organizationId: "o",
    keyId: "k",
    provider: "provider_c",
    model: "m",
    at: 0,
    ...tokens,
  };
  const admitted = { reservation, settle: (used: Used) => void charged.push(used), cancel: () => undefined };
  const price = { input: 1, output: 1, cachedInput: 1, maxOutputTokens: 20 };
  const route = { url: `${provider}/chat`, headers: {}, apiKey, tls: undefined, silenceMs, price };
  const proxy = await listening(
    createServer((_, response) => {
      const client = createClientResponse(response, randomUUID(), metrics);
      serveCall({ call, route, admitted }, client, {
        egress,
        abandonedCalls: createAbandonedCalls(),
        metrics,
        log: silentLog,
      }).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
    }),
  );
  const response = await fetch(proxy);
  const text = await response.text();
  return { status: response.status, text, charged: charged[0] };
}

const respondWith = (status: number, body: string | Buffer, type = "application/json") =>
  function respond(response: ServerResponse): void {
    response.writeHead(status, { "content-type": type }).end(body);
  };
const streams = { "content-type": "text/event-stream" };
const html = "<html><head><style>h1 {}</style></head><body><h1>Access denied</h1></body></html>";

test.each([
  ["400 with a text", 400, "plain text reason", 400, { message: "plain text reason", code: "upstream_error" }],
  ["400 with HTML", 400, html, 400, { message: "Access denied", code: "upstream_error" }],
  ["400 with errors", 400, '{"errors":[{"message":"too hot","code":"c"}]}', 400, { message: "too hot", code: "c" }],
  [
    "400 of 100 KiB",
    400,
    JSON.stringify({ error: { message: "too hot", echo: "x".repeat(100_000) } }),
    400,
    { message: "too hot" },
  ],
  ["400 that quotes the key", 400, `bad key ${apiKey}`, 400, { message: "bad key ***" }],
  [
    "400 with the key where the text is cut",
    400,
    `${"x".repeat(190)} ${apiKey}`,
    400,
    { message: `${"x".repeat(190)} ***` },
  ],
  ["403 with HTML", 403, html, 502, { message: "Access denied", code: "provider_auth_failed" }],
  [
    "401 with a text",
    401,
    `the key ${apiKey}`,
    502,
    { message: expect.stringContaining("refuses the key"), code: "provider_auth_failed" },
  ],
  [
    "503 with a text",
    503,
    "overloaded",
    502,
    { message: "The provider responded with 503: overloaded", code: "upstream_error" },
  ],
  [
    "503 with JSON",
    503,
    '{"error":{"message":"boom","code":"q"}}',
    502,
    { message: "The provider responded with 503: boom", code: "upstream_error" },
  ],
  ["500 without a body", 500, "", 502, { message: "The provider responded with 500.", code: "upstream_error" }],
  [
    "200 with an error",
    200,
    '{"error":{"message":"m","type":"quota","code":"cost_circuit_open"}}',
    502,
    { message: "m", type: "api_error", code: "upstream_error", provider: { type: "quota", code: "cost_circuit_open" } },
  ],
  [
    "200 that is cut short",
    200,
    JSON.stringify(completion).slice(0, 60),
    502,
    { message: expect.stringContaining("not valid JSON") },
  ],
] as const)("an answer of %s is an error with the provider's words", async (_, status, body, expected, error) => {
  const answer = await served(respondWith(status, body));
  expect(answer.status).toBe(expected);
  expect(JSON.parse(answer.text)).toMatchObject({ error });
  expect(answer.text).not.toContain("planted");
  expect(answer.charged).toBe(undefined);
});

test("a completion after a byte order mark is a completion", async () => {
  const { status, text, charged } = await served(
    respondWith(200, `\ufeff${JSON.stringify({ ...completion, x: "ü" })}`),
  );
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject(completion);
  expect(charged).toMatchObject({ promptTokens: 11, completionTokens: 3, estimated: false });
});

test.each([
  ["a completion", false, JSON.stringify({ choices: [{ ...completion.choices[0], usage }] })],
  [
    "a stream",
    true,
    delta + event({ choices: [{ index: 0, delta: {}, finish_reason: "stop", usage }] }) + "data: [DONE]\n\n",
  ],
])("usage in a choice of %s counts", async (_, isStream, body) => {
  const { text, charged } = await served(respondWith(200, body, "x/y"), { isStream });
  expect(charged).toMatchObject({ promptTokens: 11, completionTokens: 3, estimated: false });
  expect(text).toContain('"total_tokens":14');
});

const usageEvent = event({ id: "c", choices: [], usage });

test.each([
  ["stays open", usageEvent, 60_000, () => undefined, false],
  ["stays open without usage", "", 300, () => undefined, true],
  ["is reset", usageEvent, 60_000, (response: ServerResponse) => response.destroy(), false],
  ["is reset without usage", "", 60_000, (response: ServerResponse) => response.destroy(), true],
] as const)("a finished stream that %s is complete", async (_, last, silenceMs, then, estimated) => {
  const respond = (response: ServerResponse) => {
    response.writeHead(200, streams);
    response.write(delta + finish + last, () => then(response));
  };
  const { text, charged } = await served(respond, { isStream: true, silenceMs });
  expect(text).toMatch(/\ndata: \[DONE\]\n\n$/);
  expect(text).not.toContain("error");
  expect(charged).toMatchObject({ promptTokens: 11, estimated });
});

test("a stream that is reset before its finish is an error", async () => {
  const respond = (response: ServerResponse) => {
    response.writeHead(200, streams);
    response.write(delta, () => response.destroy());
  };
  const { text } = await served(respond, { isStream: true });
  expect(text).toContain("incomplete");
  expect(text).not.toContain("[DONE]");
});
