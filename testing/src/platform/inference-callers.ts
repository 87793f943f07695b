import OpenAI from "openai";
import { Agent, fetch as undiciFetch, request } from "undici";
import type { Platform } from "./platform.ts";
import type { Rest } from "../api/rest.ts";
import type { RestResponse } from "../api/rest-response.ts";

/** Applications of an organization that call its models. */
export interface InferenceCallers {
  /** Path of the management of the organization's inference. */
  readonly base: string;
  /** Every secret that was created. */
  readonly secrets: readonly string[];
  newKey(limits?: object): Promise<{ readonly id: string; readonly secret: string }>;
  /** The official client, without retries. */
  client(secret: string, baseURL?: string): OpenAI;
  /** One chat of a model of provider_c, for at most 50 tokens. */
  chat(secret: string, model: string, more?: object, baseURL?: string): Promise<OpenAI.ChatCompletion>;
  /** Sends a request unchanged. */
  send(path: string, init?: object): ReturnType<typeof undiciFetch>;
  put(what: "providers" | "settings", body: object): Promise<RestResponse<Record<string, unknown>>>;
  usage(by: "model" | "key"): Promise<Usage>;
  /** Number of results by code of this many calls of 66 tokens, with several in progress at a time. */
  resultsOf(urls: readonly string[], count: number, secretOf: (at: number) => string): Promise<Record<string, number>>;
  close(): Promise<void>;
}

export interface Usage {
  readonly items: readonly UsageItem[];
  readonly total: UsageItem;
}

export interface UsageItem {
  readonly model: string | null;
  readonly key_id: string | null;
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_cents: number;
  readonly estimated_requests: number;
}

/** Text that is only in calls, so that a test can find copies of prompts. */
export const plantedPrompt = "planted-prompt-8d2e";
/** Tokens that a call of `ends` reserves and uses. */
export const tokensOfCall = 66;

/** Maximum number of calls in progress: more than the largest share of one key would be rejected. */
const atOnce = 90;

export function createInferenceCallers(
  platform: Platform,
  organization: string,
  rest: Rest = platform.rest,
): InferenceCallers {
  const base = `/organizations/${organization}/inference`;
  // Over h2 Node's client rejects a response while more than 10 MB of request bodies wait, as with some of these.
  const agent = new Agent({ connect: { ca: platform.ca }, connections: 256, allowH2: false });
  const secrets: string[] = [];

  const client = (apiKey: string, baseURL = platform.admin.inference_url) =>
    new OpenAI({
      apiKey,
      baseURL,
      maxRetries: 0,
      fetch: ((url: string, init: object) => undiciFetch(url, { ...init, dispatcher: agent })) as never,
    });

  return {
    base,
    secrets,
    client,
    async newKey(limits = {}) {
      const { status, json } = await rest.post<{ id: string; secret: string }>(`${base}/keys`, {
        name: "app",
        ...limits,
      });
      if (status !== 201) throw new Error(`no key was created: ${status} ${JSON.stringify(json)}`);
      secrets.push(json.secret);
      return json;
    },
    chat: (secret, model, more = {}, baseURL) =>
      client(secret, baseURL).chat.completions.create({
        model: `provider_c/${model}`,
        messages: [{ role: "user", content: plantedPrompt }],
        max_tokens: 50,
        ...more,
      } as OpenAI.ChatCompletionCreateParamsNonStreaming),
    send: (path, init = {}) => undiciFetch(`${platform.admin.inference_url}${path}`, { dispatcher: agent, ...init }),
    put: (what, body) => rest.call("PUT", `${base}/${what}`, { body }),
    usage: async (by) => (await rest.get<Usage>(`${base}/usage?group_by=${by}`)).json,
    async resultsOf(urls, count, secretOf) {
      const ends: Record<string, number> = {};
      const body = JSON.stringify({
        model: "provider_c/uses-16-50",
        max_tokens: 50,
        messages: [{ role: "user", content: plantedPrompt }],
      });
      await inParallel([...Array.from({ length: count }).keys()], atOnce * urls.length, async (at) => {
        const response = await request(`${urls[at % urls.length]}/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${secretOf(at)}` },
          body,
          dispatcher: agent,
        });
        const { error } = (await response.body.json()) as { error?: { code: string } };
        const end = error?.code ?? "ok";
        ends[end] = (ends[end] ?? 0) + 1;
      });
      return ends;
    },
    close: () => agent.destroy(),
  };
}

/** Status and code that a call ends with, or "ok". */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (error) {
    if (error instanceof OpenAI.APIError && error.code) return `${error.status} ${error.code}`;
    throw error;
  }
}

export async function inParallel<T>(
  items: readonly T[],
  most: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const remaining = items.values();
  const worker = async () => {
    for (const item of remaining) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker));
}
