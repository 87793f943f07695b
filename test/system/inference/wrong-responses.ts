import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";

/** Usage that the organization is charged; "estimate" is the proxy's own count of a part. */
export interface Charge {
  readonly prompt: number | "estimate";
  readonly completion: number | "estimate";
  /** True if the division of a reported total is an estimate. */
  readonly isEstimated?: true;
}

/** A response of a provider that is not a plain completion, and its effects. */
export interface WrongResponse {
  readonly name: string;
  readonly isStream?: true;
  respond(response: ServerResponse): void;
  /** Status for the client. */
  readonly status: number;
  /** Part of the body for the client: of the error, of the completion, or of the stream. */
  readonly body: string;
  /** Charged usage; absent: none. */
  readonly charge?: Charge;
}

/** The key of the organization at the provider. */
export const providerKey = "sk-planted-c0ffee";
/** Limit of output tokens of each call. */
export const maxTokens = 20;

const json = { "content-type": "application/json" };
const events = { "content-type": "text/event-stream" };
const message = { role: "assistant", content: "Hello there" };
const choices = [{ index: 0, message, finish_reason: "stop" }];
const usage = { prompt_tokens: 11, completion_tokens: 3, total_tokens: 14 };
const reported: Charge = { prompt: 11, completion: 3 };

const respondWith = (status: number, body: unknown, headers: Record<string, string> = json) =>
  function respond(response: ServerResponse): void {
    response
      .writeHead(status, headers)
      .end(typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  };
const withUsage = (value: unknown) => respondWith(200, { object: "chat.completion", choices, usage: value });
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const delta = (content: string) => event({ id: "c", choices: [{ index: 0, delta: { content } }] });
const role = event({ id: "c", choices: [{ index: 0, delta: { role: "assistant", content: "" } }] });
const finish = event({ id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
const usageEvent = event({ id: "c", choices: [], usage });
const endMark = "data: [DONE]\n\n";
const streamed = (text: string, headers: Record<string, string> = events) => respondWith(200, text, headers);

/** Sends the text, and breaks the connection once it is out. */
const broken = (text: string, headers: Record<string, string>) =>
  function respond(response: ServerResponse): void {
    response.writeHead(200, headers).write(text, () => response.socket?.destroySoon());
  };
const html = "<html><head><title>x</title></head><body><h1>502 Bad Gateway</h1></body></html>";

// biome-ignore format: a table, aligned so that it reads as one
export const wrongResponses: readonly WrongResponse[] = [
  // Responses without a completion.
  { name: "a page of HTML", respond: respondWith(200, html, { "content-type": "text/html" }), status: 502, body: "502 Bad Gateway" },
  { name: "an error object with 200", respond: respondWith(200, { error: { message: "overheated", type: "server_error", code: "hot", param: null } }), status: 502, body: '"message":"overheated","type":"api_error","param":null,"code":"upstream_error","provider":{"type":"server_error","code":"hot"}' },
  { name: "an error text with 200", respond: respondWith(200, { error: "overheated" }), status: 502, body: '"message":"overheated"' },
  { name: "a message with 200", respond: respondWith(200, { message: "overheated" }), status: 502, body: '"message":"overheated"' },
  { name: "an empty object", respond: respondWith(200, {}), status: 502, body: "not a completion" },
  { name: "a list", respond: respondWith(200, []), status: 502, body: "not a completion" },
  { name: "null", respond: respondWith(200, "null"), status: 502, body: "not a completion" },
  { name: "an empty body", respond: respondWith(200, ""), status: 502, body: "not a completion" },
  { name: "a JSON text cut short", respond: respondWith(200, JSON.stringify({ choices }).slice(0, 60)), status: 502, body: "upstream_error" },
  { name: "a connection cut short", respond: broken('{"id":"c"', { ...json, "content-length": "500" }), status: 502, body: "incomplete" },
  { name: "a coding that was not requested", respond: respondWith(200, gzipSync(JSON.stringify({ choices, usage })), { ...json, "content-encoding": "gzip" }), status: 502, body: "gzip" },
  { name: "UTF-16", respond: respondWith(200, Buffer.from(JSON.stringify({ choices, usage }), "utf16le")), status: 502, body: "upstream_error" },
  { name: "choices that are no list", respond: respondWith(200, { choices: {} }), status: 502, body: "not a completion" },
  { name: "no choice", respond: respondWith(200, { choices: [] }), status: 502, body: "not a completion" },
  { name: "an error with usage", respond: respondWith(200, { error: { message: "overheated" }, usage }), status: 502, body: "overheated", charge: reported },
  { name: "status 204", respond: respondWith(204, ""), status: 502, body: "204" },
  // Usage.
  { name: "usage without prompt tokens", respond: withUsage({ completion_tokens: 3 }), status: 200, body: "Hello there", charge: { prompt: "estimate", completion: 3 } },
  { name: "usage without output tokens", respond: withUsage({ prompt_tokens: 11 }), status: 200, body: "Hello there", charge: { prompt: 11, completion: "estimate" } },
  { name: "usage with the total and the prompt", respond: withUsage({ prompt_tokens: 11, total_tokens: 14 }), status: 200, body: "Hello there", charge: reported },
  { name: "usage with the total and the output", respond: withUsage({ completion_tokens: 3, total_tokens: 14 }), status: 200, body: "Hello there", charge: reported },
  { name: "usage with only the total", respond: withUsage({ total_tokens: 30 }), status: 200, body: '"total_tokens":30', charge: { prompt: 11, completion: 19, isEstimated: true } },
  { name: "usage with a total above both parts", respond: withUsage({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 28 }), status: 200, body: '"total_tokens":28', charge: { prompt: 10, completion: 18 } },
  { name: "usage as text", respond: withUsage({ prompt_tokens: "11", completion_tokens: "3" }), status: 200, body: "Hello there", charge: { prompt: "estimate", completion: "estimate" } },
  { name: "no usage, and more text than requested", respond: respondWith(200, { choices: [{ index: 0, message: { role: "assistant", content: "many words ".repeat(500) } }] }), status: 200, body: "many words", charge: { prompt: "estimate", completion: "estimate" } },
  { name: "far more usage than reserved", respond: withUsage({ prompt_tokens: 60_000, completion_tokens: 15 }), status: 200, body: "Hello there", charge: { prompt: 60_000, completion: 15 } },
  // Errors.
  { name: "an error object", respond: respondWith(400, { error: { message: "too hot", type: "heat", code: "hot", param: "top_p" } }), status: 400, body: '"message":"too hot","type":"heat","param":"top_p","code":"hot"' },
  { name: "a message", respond: respondWith(400, { object: "error", message: "too hot", type: "heat", code: 40_001 }), status: 400, body: '"message":"too hot","type":"heat","param":null,"code":"40001"' },
  { name: "a detail", respond: respondWith(409, { detail: "too hot" }), status: 409, body: '"message":"too hot"' },
  { name: "a list of invalid members", respond: respondWith(422, { detail: [{ loc: ["body", "top_p"], msg: "too hot", type: "x" }] }), status: 422, body: '"message":"too hot","type":"api_error","param":"top_p"' },
  { name: "an error text", respond: respondWith(404, { error: "no such model" }), status: 404, body: '"message":"no such model"' },
  { name: "a refusal with 403", respond: respondWith(403, { error: { message: "not in your region" } }), status: 502, body: '"message":"not in your region","type":"api_error","param":null,"code":"provider_auth_failed"' },
  { name: "a text with 400", respond: respondWith(400, "plain text reason", { "content-type": "text/plain" }), status: 400, body: '"message":"plain text reason"' },
  { name: "a text with 503", respond: respondWith(503, "overloaded", { "content-type": "text/plain" }), status: 502, body: "responded with 503: overloaded" },
  { name: "a refusal with 401", respond: respondWith(401, { error: { message: `the key ${providerKey} is wrong` } }), status: 502, body: "provider_auth_failed" },
  { name: "an error that quotes the key", respond: respondWith(400, { error: { message: `bad header: Bearer ${providerKey}` } }), status: 400, body: "bad header: Bearer ***" },
  // Streams.
  { name: "a page of HTML in place of a stream", isStream: true, respond: streamed(html, { "content-type": "text/html" }), status: 502, body: "502 Bad Gateway" },
  { name: "a JSON error in place of a stream", isStream: true, respond: respondWith(200, { error: { message: "overheated", code: "hot" } }), status: 502, body: '"message":"overheated"' },
  { name: "an error as first event", isStream: true, respond: streamed(event({ error: { message: "overheated", code: "hot" } })), status: 502, body: '"message":"overheated","type":"api_error","param":null,"code":"upstream_error","provider":{"code":"hot"}' },
  { name: "an error event", isStream: true, respond: streamed("event: error\ndata: overheated\n\n"), status: 502, body: '"message":"overheated"' },
  { name: "an error after output", isStream: true, respond: streamed(delta("Hello") + event({ error: { message: "overheated" } })), status: 200, body: 'data: {"error":{"message":"overheated"', charge: { prompt: "estimate", completion: "estimate" } },
  { name: "a stream cut before any output", isStream: true, respond: broken(": wait\n\n", events), status: 200, body: "incomplete" },
  { name: "a stream that ends before any output", isStream: true, respond: streamed(""), status: 502, body: "incomplete" },
  { name: "a stream with a role only", isStream: true, respond: broken(role, events), status: 200, body: "incomplete" },
  { name: "a stream cut after output", isStream: true, respond: broken(delta("Hello"), events), status: 200, body: "incomplete", charge: { prompt: "estimate", completion: "estimate" } },
  { name: "a stream without an end mark", isStream: true, respond: streamed(delta("Hello") + finish), status: 200, body: endMark, charge: { prompt: "estimate", completion: "estimate" } },
  { name: "a stream with usage and without an end mark", isStream: true, respond: streamed(delta("Hello") + finish + usageEvent), status: 200, body: endMark, charge: reported },
  { name: "a stream with only the total", isStream: true, respond: streamed(delta("Hello") + finish + event({ choices: [], usage: { total_tokens: 30 } }) + endMark), status: 200, body: '"total_tokens":30', charge: { prompt: 11, completion: 19, isEstimated: true } },
  { name: "a stream with a total above both parts", isStream: true, respond: streamed(delta("Hello") + finish + event({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 28 } }) + endMark), status: 200, body: '"prompt_tokens":10,"completion_tokens":5,"total_tokens":28', charge: { prompt: 10, completion: 18 } },
  { name: "a stream with comments", isStream: true, respond: streamed(`: wait\n\n${delta("Hello")}${finish}${usageEvent}${endMark}`), status: 200, body: ": wait\n\n", charge: reported },
  { name: "an event of three megabytes", isStream: true, respond: streamed(delta("x".repeat(3 << 20)) + finish + usageEvent + endMark), status: 200, body: endMark, charge: reported },
  { name: "a stream of another coding", isStream: true, respond: respondWith(200, gzipSync(delta("Hello") + endMark), { ...events, "content-encoding": "gzip" }), status: 502, body: "gzip" },
];
