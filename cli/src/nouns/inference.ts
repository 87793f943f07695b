import { readFileSync } from "node:fs";
import { Option } from "commander";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { omitUndefined, take, integer, timeOrAge, timeOrDelay } from "../flag-values.ts";
import { organizationOf } from "../lookup.ts";

const providerColumns = ["provider", "enabled", "base_url", "eu_route", "capabilities", "updated_at"];
const keyColumns = ["id", "name", "status", "monthly_token_limit", "rate_limit_rpm", "expires_at"];
const usageColumns = ["requests", "prompt_tokens", "completion_tokens", "cost_cents", "estimated_requests"];

export function addInference(inference: CliCommand): void {
  addProviders(inference.command("providers").description("model providers of the organization"));
  addSettings(inference);
  addKeys(inference.command("keys").description("keys of applications for the inference proxy"));

  inference
    .command("usage")
    .description("show usage and cost, at most 5 s old")
    .addOption(new Option("--group-by <group>", "grouping of the sums").choices(["model", "key"]).default("model"))
    .option("--from <time>", "start of the period: RFC 3339, or an age such as 7d; this month by default", timeOrAge)
    .option("--to <time>", "end of the period: RFC 3339, or an age such as 1d; now by default", timeOrAge)
    .example("inference usage --group-by model")
    .does(async ({ client, output }, flags: { groupBy: string; from?: string; to?: string }) => {
      const query = { group_by: flags.groupBy, ...omitUndefined({ from: flags.from, to: flags.to }) };
      const usage = await client.inference.usage(await organizationOf(client), query);
      if (output.format !== "table") return output.show(usage);
      output.list([...usage.items], [...(flags.groupBy === "key" ? ["key_id", "name"] : ["model"]), ...usageColumns]);
      output.info(`${usage.total.requests} requests, ${usage.total.cost_cents} cents`);
    });

  inference
    .command("models")
    .description("list the models that a key may call; asks for the key")
    .option("--url <url>", "base URL of the proxy, when the installation has none")
    .example("inference models")
    .does(async (context, flags: { url?: string }) => {
      const { data } = await callProxy<{ data: { id: string }[] }>(context, flags, "models");
      context.output.list(data, ["id", "owned_by", "eu"]);
    });

  inference
    .command("try <model>")
    .description("call a model once as a test; asks for the key")
    .option("--prompt <text>", "prompt of the call", "Say hello.")
    .option("--max-tokens <tokens>", "maximum number of tokens of the completion", integer, 64)
    .option("--url <url>", "base URL of the proxy, when the installation has none")
    .example("inference try provider_c/large")
    .example('inference try provider_c/large --prompt "What is a latch?"')
    .does(async (context, model: string, flags: { prompt: string; maxTokens: number; url?: string }) => {
      const request = { model, max_tokens: flags.maxTokens, messages: [{ role: "user", content: flags.prompt }] };
      const response = await callProxy<ChatResponse>(context, flags, "chat/completions", request);
      if (context.output.format !== "table") return context.output.show(response);
      context.output.info(response.choices[0]?.message.content ?? "");
      const { prompt_tokens: prompt, completion_tokens: completion } = response.usage ?? {};
      context.note(`${prompt ?? "?"} tokens in, ${completion ?? "?"} out`);
    });
}

interface ChatResponse {
  readonly choices: readonly { readonly message: { readonly content: string | null } }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number };
}

interface ProviderFlags {
  readonly baseUrl?: string;
  readonly euEndpoint?: boolean;
  readonly enabled?: boolean;
  readonly caCertificate?: string;
  readonly keepKey?: boolean;
}

function addProviders(providers: CliCommand): void {
  providers
    .command("set <provider>")
    .description(
      "configure a provider: openai, anthropic, mistral, google, azure, provider_a to _e; asks for its API key",
    )
    .option("--base-url <url>", "base URL of its API: an absolute https URL")
    .option("--eu-endpoint", "attest that the URL is served from the EU")
    .option("--no-eu-endpoint", "withdraw that attestation")
    .option("--enabled", "enable calls to the provider")
    .option("--no-enabled", "refuse calls to the provider; its key remains stored")
    .option("--ca-certificate <file>", "PEM file of certificate authorities to trust instead of the public ones")
    .option("--keep-key", "keep the stored key instead of asking for one")
    .example("inference providers set openai")
    .example("inference providers set provider_c --base-url https://models.example.com/v1")
    .example("inference providers set provider_c --keep-key --no-enabled")
    .does(async ({ client, output, terminal }, provider: string, flags: ProviderFlags) => {
      const key = flags.keepKey === true ? undefined : await terminal.askSecret(`API key of ${provider}`);
      const change = {
        provider,
        ...omitUndefined({
          api_key: key,
          base_url: flags.baseUrl,
          eu_endpoint: flags.euEndpoint,
          enabled: flags.enabled,
          ca_certificate: flags.caCertificate && readFileSync(flags.caCertificate, "utf8"),
        }),
      };
      output.show(await client.inference.putProvider(await organizationOf(client), change));
    });

  providers
    .command("list")
    .description("list configured providers, without their keys")
    .example("inference providers list")
    .does(async ({ client, output }) =>
      output.list([...(await client.inference.providers(await organizationOf(client)))], providerColumns),
    );

  providers
    .command("delete <provider>")
    .description("delete a provider and its key; its usage remains stored")
    .option("--yes", "do not ask for confirmation")
    .example("inference providers delete provider_c")
    .does(async ({ client, output, confirm }, provider: string, { yes }: { yes?: boolean }) => {
      await confirm(`Delete ${provider} and its key? Calls to it are refused immediately.`, yes);
      await client.inference.deleteProvider(await organizationOf(client), provider);
      output.info(`${provider} is deleted`);
    });
}

interface SettingsFlags {
  readonly monthlyLimitCents?: number;
  readonly euOnly?: boolean;
  readonly alertPct?: number;
  readonly resetCircuit?: boolean;
}

function addSettings(inference: CliCommand): void {
  inference
    .command("settings")
    .description("show limits and the usage of the month, or change limits")
    .option("--monthly-limit-cents <cents>", "cost limit of a month (UTC)", integer)
    .option("--eu-only", "refuse calls to models outside of the EU")
    .option("--no-eu-only", "allow calls to models outside of the EU")
    .option("--alert-pct <percent>", "percentage of the limit at which an event is emitted", integer)
    .option("--reset-circuit", "allow calls again after the limit was raised")
    .example("inference settings --monthly-limit-cents 5000")
    .example("inference settings --monthly-limit-cents 8000 --reset-circuit")
    .does(async ({ client, output }, flags: SettingsFlags) => {
      const change = omitUndefined({
        monthly_cost_limit_cents: flags.monthlyLimitCents,
        eu_only: flags.euOnly,
        alert_pct: flags.alertPct,
        reset_circuit: flags.resetCircuit,
      });
      const organization = await organizationOf(client);
      output.show(
        await (Object.keys(change).length === 0
          ? client.inference.settings(organization)
          : client.inference.putSettings(organization, change)),
      );
    });
}

interface KeyFlags {
  readonly name?: string;
  readonly rpm?: number;
  readonly tokens?: number;
  readonly expiresAt?: string;
}

const limitsOf = ({ rpm, tokens, expiresAt }: KeyFlags) =>
  omitUndefined({ rate_limit_rpm: rpm, monthly_token_limit: tokens, expires_at: expiresAt });

function addKeys(keys: CliCommand): void {
  keys
    .command("create <name>")
    .description("create a key; its secret is shown only once")
    .option("--rpm <requests>", "maximum number of requests in 60 s", integer)
    .option("--tokens <tokens>", "maximum number of tokens in a month (UTC), input and output", integer)
    .option(
      "--expires-at <time>",
      "expiry time: RFC 3339, or a time from now such as 30d; none by default",
      timeOrDelay,
    )
    .example("inference keys create app --rpm 60 --tokens 100000")
    .does(async ({ client, output }, name: string, flags: KeyFlags) =>
      output.show(await client.inference.createKey(await organizationOf(client), { name, ...limitsOf(flags) })),
    );

  keys
    .command("list")
    .description("list all keys, without their secrets")
    .example("inference keys list")
    .does(async ({ client, output }) =>
      output.list(await take(client.inference.keys(await organizationOf(client))), keyColumns),
    );

  keys
    .command("get <inference-key>")
    .description("show a key")
    .example("inference keys get 019a...")
    .does(async ({ client, output }, id: string) =>
      output.show(await client.inference.getKey(await organizationOf(client), id)),
    );

  keys
    .command("update <inference-key>")
    .description("change name or limits of a key")
    .option("--name <name>", "new name")
    .option("--rpm <requests>", "maximum number of requests in 60 s", integer)
    .option("--tokens <tokens>", "maximum number of tokens in a month (UTC), input and output", integer)
    .option("--expires-at <time>", "new expiry time: RFC 3339, or a time from now such as 30d", timeOrDelay)
    .example("inference keys update 019a... --rpm 120")
    .does(async ({ client, output }, id: string, flags: KeyFlags) => {
      const change = { ...limitsOf(flags), ...omitUndefined({ name: flags.name }) };
      output.show(await client.inference.updateKey(await organizationOf(client), id, change));
    });

  for (const [verb, status, about] of [
    ["suspend", "suspended", "refuse calls of a key until it is resumed"],
    ["resume", "active", "accept calls of a suspended key again"],
  ] as const)
    keys
      .command(`${verb} <inference-key>`)
      .description(about)
      .example(`inference keys ${verb} 019a...`)
      .does(async ({ client, output }, id: string) =>
        output.show(await client.inference.updateKey(await organizationOf(client), id, { status })),
      );

  keys
    .command("rotate <inference-key>")
    .description("give a key a new secret, shown only once; the old one is refused immediately")
    .option("--yes", "do not ask for confirmation")
    .example("inference keys rotate 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Give the key ${id} a new secret? The old one is refused immediately.`, yes);
      output.show(await client.inference.rotateKey(await organizationOf(client), id));
    });

  keys
    .command("delete <inference-key>")
    .description("revoke a key immediately; its usage remains stored")
    .option("--yes", "do not ask for confirmation")
    .example("inference keys delete 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Revoke the key ${id}? Its calls are refused immediately.`, yes);
      await client.inference.deleteKey(await organizationOf(client), id);
      output.info(`${id} is deleted`);
    });
}

/** Calls the inference proxy as an application does; asks for the key. */
async function callProxy<T>(
  { settings, terminal, signal }: Context,
  { url }: { readonly url?: string },
  path: string,
  body?: object,
): Promise<T> {
  const base = url ?? settings.inferenceUrl;
  if (base === undefined) throw new UsageError("name the proxy by --url, such as https://inference.example.com/v1");
  const key = await terminal.askSecret("Inference key");
  const { createAuthorityFetch } = await import("@holdfast/sdk/node/authority-fetch.ts");
  const fetch = settings.caFile === undefined ? globalThis.fetch : createAuthorityFetch(settings.caFile);
  const response = await fetch(`${base.replace(/\/+$/, "")}/${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
    signal,
  });
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as T;
  throw new UsageError(`the proxy responded with status ${response.status}: ${messageOf(text)}`);
}

function messageOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: string; code?: string } };
    return `${error?.message ?? text} (${error?.code ?? "no code"})`;
  } catch {
    return text.slice(0, 200);
  }
}
