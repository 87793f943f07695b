/** A model with its prices in cents (EUR) per million tokens, which are microcents per token. */
export interface ModelPrice {
  readonly name: string;
  readonly input: number;
  readonly output: number;
  /** Price of prompt tokens that the provider reads from its cache; absent: `input`. */
  readonly cachedInput?: number;
  /** Maximum output tokens of a call that sets no limit. */
  readonly maxOutputTokens: number;
}

/** Whether a provider processes calls in the EU: always, never, or only if an operator attests it for the URL. */
export type EuRoute = "yes" | "no" | "attested";

/** A model provider: its API, capabilities and prices. */
export interface CatalogProvider {
  /** Prefix of its models' names. */
  readonly name: string;
  readonly capabilities: { readonly chat: boolean; readonly embeddings: boolean };
  readonly eu: EuRoute;
  /**
   * Absolute https URL of the API, such as "https://api.example.com/v1"; absent if organizations configure their own.
   */
  readonly url?: string;
  /** True if every organization has its own URL at this provider. */
  readonly needsUrl?: boolean;
  /** Header with the API key: "authorization" as a bearer token (default), or another header with the bare key. */
  readonly authHeader?: string;
  /** Time in milliseconds for which the provider may send nothing during a call; absent: `defaultSilenceMs`. */
  readonly silenceMs?: number;
  readonly models: readonly ModelPrice[];
}

export interface Catalog {
  readonly providers: readonly CatalogProvider[];
  /** Price of models without a price. */
  readonly defaultPrice: Omit<ModelPrice, "name">;
}

/** Default time limit without a byte from a provider. Models that reason first send nothing for minutes. */
export const defaultSilenceMs = 300_000;
const silenceMaxS = 1_800;

export const platformManaged = "platform_managed";

const both = { chat: true, embeddings: true };

/**
 * The providers of the specification, whose URLs each organization configures, and products by their own names, with
 * the public URL of their OpenAI-compatible API. Operators add URLs and models with `HOLDFAST_INFERENCE_CATALOG`. No
 * product is "yes" for the EU: that is for organizations to attest.
 */
// biome-ignore format: a table, aligned so that it reads as one
const shipped: readonly CatalogProvider[] = [
  { name: "provider_a", capabilities: both,                             eu: "no",       models: [] },
  { name: "provider_b", capabilities: { chat: true, embeddings: false }, eu: "no",       models: [] },
  { name: "provider_c", capabilities: both,                             eu: "yes",      models: [] },
  { name: "provider_d", capabilities: both,                             eu: "attested", models: [], needsUrl: true },
  { name: "provider_e", capabilities: both,                             eu: "no",       models: [] },
  { name: "openai",     capabilities: both,                             eu: "attested", models: [], url: "https://api.openai.com/v1" },
  { name: "anthropic",  capabilities: { chat: true, embeddings: false }, eu: "attested", models: [], url: "https://api.anthropic.com/v1" },
  { name: "mistral",    capabilities: both,                             eu: "attested", models: [], url: "https://api.mistral.ai/v1" },
  { name: "google",     capabilities: both,                             eu: "attested", models: [], url: "https://generativelanguage.googleapis.com/v1beta/openai" },
  { name: "azure",      capabilities: both,                             eu: "attested", models: [], needsUrl: true, authHeader: "api-key" },
];

/** Expensive on purpose: a model without a price must not be free. */
const fallbackPrice = { input: 1_500, output: 6_000, maxOutputTokens: 4_096 };

export const shippedCatalog: Catalog = { providers: shipped, defaultPrice: fallbackPrice };

/**
 * The shipped catalog with what an operator's JSON adds or replaces:
 *
 *     {"default_price": {"input": 1500, "output": 6000, "max_output_tokens": 4096},
 *      "providers": [{"name": "provider_c", "url": "https://...", "eu": "yes", "silence_seconds": 600,
 *                     "capabilities": {"chat": true, "embeddings": true},
 *                     "models": [{"name": "large", "input": 200, "cached_input": 20, "output": 600,
 *                                 "max_output_tokens": 8192}]}]}
 *
 * Throws an Error that names the first fault.
 */
export function readCatalog(text: string): Catalog {
  const file = record(JSON.parse(text), "the catalog");
  const added = list(file["providers"] ?? [], "providers").map((each, index) =>
    providerOf(each, `providers[${index}]`),
  );
  const names = new Set(added.map(({ name }) => name));
  if (names.size !== added.length) throw new Error("providers: two have the same name");
  return {
    providers: [...shipped.filter(({ name }) => !names.has(name)), ...added],
    defaultPrice: file["default_price"] === undefined ? fallbackPrice : priceOf(file["default_price"], "default_price"),
  };
}

export function providerNamed({ providers }: Catalog, name: string): CatalogProvider | undefined {
  return providers.find((provider) => provider.name === name);
}

/** The price of a model. Without a price it costs as much as the provider's most expensive model, else the default. */
export function priceOfModel(
  { defaultPrice }: Catalog,
  { models }: CatalogProvider,
  name: string,
): Omit<ModelPrice, "name"> {
  const priced = models.find((model) => model.name === name);
  if (priced !== undefined) return priced;
  // Without `cachedInput`: a cached token costs as much as another one.
  const highest = (which: "input" | "output" | "maxOutputTokens") =>
    models.length === 0 ? defaultPrice[which] : Math.max(...models.map((model) => model[which]));
  return { input: highest("input"), output: highest("output"), maxOutputTokens: highest("maxOutputTokens") };
}

/** Cost of tokens in microcents, rounded up. */
export function costOf(
  { input, output, cachedInput = input }: Pick<ModelPrice, "input" | "output" | "cachedInput">,
  tokens: { readonly promptTokens: number; readonly completionTokens: number; readonly cachedTokens?: number },
): number {
  const { promptTokens, completionTokens, cachedTokens = 0 } = tokens;
  const prompt = (promptTokens - cachedTokens) * input + cachedTokens * cachedInput;
  return Math.ceil(prompt + completionTokens * output - 1e-6);
}

/** True if calls are processed in the EU. A configured URL counts only if it was attested. */
export function hasEuRoute(
  { eu, url }: CatalogProvider,
  { baseUrl, euEndpoint }: { readonly baseUrl: string; readonly euEndpoint: boolean },
): boolean {
  if (eu === "no") return false;
  if (baseUrl !== "") return euEndpoint;
  return eu === "yes" && url !== undefined;
}

function providerOf(value: unknown, at: string): CatalogProvider {
  const each = record(value, at);
  const name = text(each["name"], `${at}.name`);
  if (!/^[a-z0-9][a-z0-9_-]{0,63}$/.test(name) || name === platformManaged)
    throw new Error(`${at}.name: ${name} cannot be a prefix`);
  const eu = text(each["eu"], `${at}.eu`);
  if (eu !== "yes" && eu !== "no" && eu !== "attested") throw new Error(`${at}.eu: must be yes, no or attested`);
  const capabilities = record(each["capabilities"], `${at}.capabilities`);
  const url = each["url"] === undefined ? undefined : text(each["url"], `${at}.url`);
  if (url !== undefined && !/^https:\/\/[^/]/.test(url)) throw new Error(`${at}.url: must begin with https://`);
  const authHeader = each["auth_header"] === undefined ? undefined : text(each["auth_header"], `${at}.auth_header`);
  if (authHeader !== undefined && !/^[a-z][a-z0-9-]{0,63}$/.test(authHeader))
    throw new Error(`${at}.auth_header: must be the name of a header in lower case`);
  const silenceS = each["silence_seconds"];
  if (
    silenceS !== undefined &&
    !(Number.isInteger(silenceS) && Number(silenceS) >= 1 && Number(silenceS) <= silenceMaxS)
  )
    throw new Error(`${at}.silence_seconds: must be an integer from 1 to ${silenceMaxS}`);
  return {
    name,
    capabilities: { chat: capabilities["chat"] === true, embeddings: capabilities["embeddings"] === true },
    eu,
    ...(url !== undefined && { url }),
    ...(each["needs_url"] === true && { needsUrl: true }),
    ...(authHeader !== undefined && { authHeader }),
    ...(silenceS !== undefined && { silenceMs: Number(silenceS) * 1_000 }),
    models: list(each["models"] ?? [], `${at}.models`).map((model, index) => {
      const where = `${at}.models[${index}]`;
      return { name: text(record(model, where)["name"], `${where}.name`), ...priceOf(model, where) };
    }),
  };
}

function priceOf(value: unknown, at: string): Omit<ModelPrice, "name"> {
  const { input, output, cached_input: cachedInput, max_output_tokens: maxOutputTokens } = record(value, at);
  const price = (each: unknown, name: string) => {
    if (typeof each === "number" && each >= 0 && each <= 1e9) return each;
    throw new Error(`${at}.${name}: must be cents per million tokens`);
  };
  if (!Number.isInteger(maxOutputTokens) || (maxOutputTokens as number) < 0 || (maxOutputTokens as number) > 1e9)
    throw new Error(`${at}.max_output_tokens: must be an integer`);
  return {
    input: price(input, "input"),
    output: price(output, "output"),
    ...(cachedInput !== undefined && { cachedInput: price(cachedInput, "cached_input") }),
    maxOutputTokens: maxOutputTokens as number,
  };
}

function record(value: unknown, at: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`${at}: must be an object`);
  return value as Record<string, unknown>;
}

function list(value: unknown, at: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`${at}: must be a list`);
  return value;
}

function text(value: unknown, at: string): string {
  if (typeof value !== "string" || value === "") throw new Error(`${at}: must be a string`);
  return value;
}
