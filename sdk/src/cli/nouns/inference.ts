import { readFileSync } from "node:fs";
import { Option } from "commander";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { given, take, wholeNumber } from "../flag-values.ts";
import { organizationOf } from "../organization.ts";

const providerColumns = ["provider", "enabled", "base_url", "eu_route", "capabilities", "updated_at"];
const keyColumns = ["id", "name", "status", "monthly_token_limit", "rate_limit_rpm", "expires_at"];
const usageColumns = ["requests", "prompt_tokens", "completion_tokens", "cost_cents", "estimated_requests"];

export function addInference(inference: CliCommand): void {
  addProviders(inference.command("providers").description("providers of models that the organization has keys of"));
  addSettings(inference);
  addKeys(inference.command("keys").description("keys that applications call the proxy with"));

  inference
    .command("usage")
    .description("what was used and what it cost, at most 5 s old")
    .addOption(new Option("--group-by <group>", "what is summed up").choices(["model", "key"]).default("model"))
    .option("--from <time>", "RFC 3339; the beginning of this month when not given")
    .option("--to <time>", "RFC 3339; now when not given")
    .example("inference usage --group-by model")
    .does(async ({ client, output }, flags: { groupBy: string; from?: string; to?: string }) => {
      const query = { group_by: flags.groupBy, ...given({ from: flags.from, to: flags.to }) };
      const usage = await client.inference.usage(await organizationOf(client), query);
      if (output.format !== "table") return output.show(usage);
      output.list([...usage.items], [...(flags.groupBy === "key" ? ["key_id", "name"] : ["model"]), ...usageColumns]);
      output.say(`${usage.total.requests} requests, ${usage.total.cost_cents} cents`);
    });

  inference
    .command("models")
    .description("models that a key can call; the key is asked for")
    .option("--url <url>", "base URL of the proxy, where the installation does not tell it")
    .example("inference models")
    .does(async (context, flags: { url?: string }) => {
      const { data } = await called<{ data: { id: string }[] }>(context, flags, "models");
      context.output.list(data, ["id", "owned_by", "eu"]);
    });

  inference
    .command("try <model>")
    .description("one call of a model, to see that it works; the key is asked for")
    .option("--prompt <text>", "what it is asked", "Say hello.")
    .option("--max-tokens <tokens>", "the longest answer", wholeNumber, 64)
    .option("--url <url>", "base URL of the proxy, where the installation does not tell it")
    .example("inference try provider_c/large")
    .example('inference try provider_c/large --prompt "What is a latch?"')
    .does(async (context, model: string, flags: { prompt: string; maxTokens: number; url?: string }) => {
      const asked = { model, max_tokens: flags.maxTokens, messages: [{ role: "user", content: flags.prompt }] };
      const answer = await called<ChatAnswer>(context, flags, "chat/completions", asked);
      if (context.output.format !== "table") return context.output.show(answer);
      context.output.say(answer.choices[0]?.message.content ?? "");
      const { prompt_tokens: prompt, completion_tokens: completion } = answer.usage ?? {};
      context.note(`${prompt ?? "?"} tokens in, ${completion ?? "?"} out`);
    });
}

interface ChatAnswer {
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
    .description("configure a provider, or change it; its API key is asked for")
    .option("--base-url <url>", "where it is called: an absolute https URL")
    .option("--eu-endpoint", "attest that the URL is served from the EU")
    .option("--no-eu-endpoint", "take that back")
    .option("--enabled", "let calls through again")
    .option("--no-enabled", "refuse calls to it, and keep its key")
    .option("--ca-certificate <file>", "PEM file of authorities to verify it by instead of the public ones")
    .option("--keep-key", "do not ask for a key: the stored one stays")
    .example("inference providers set provider_c --base-url https://models.example.com/v1")
    .example("inference providers set provider_c --keep-key --no-enabled")
    .does(async ({ client, output, terminal }, provider: string, flags: ProviderFlags) => {
      const key = flags.keepKey === true ? undefined : await terminal.askSecret(`API key of ${provider}`);
      const change = {
        provider,
        ...given({
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
    .description("all that are configured, without their keys")
    .example("inference providers list")
    .does(async ({ client, output }) =>
      output.list([...(await client.inference.providers(await organizationOf(client)))], providerColumns),
    );

  providers
    .command("delete <provider>")
    .description("forget a provider and its key; usage stays")
    .option("--yes", "do not ask")
    .example("inference providers delete provider_c")
    .does(async ({ client, output, confirm }, provider: string, { yes }: { yes?: boolean }) => {
      await confirm(`Forget ${provider} and its key? Calls to it are refused at once.`, yes);
      await client.inference.deleteProvider(await organizationOf(client), provider);
      output.say(`${provider} is deleted`);
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
    .description("show limits and how the month stands; change what a flag names")
    .option("--monthly-limit-cents <cents>", "what a month (UTC) may cost", wholeNumber)
    .option("--eu-only", "refuse calls that would leave the EU")
    .option("--no-eu-only", "let them through")
    .option("--alert-pct <percent>", "share of the limit at which an event tells of it", wholeNumber)
    .option("--reset-circuit", "let calls through again after the limit was raised")
    .example("inference settings --monthly-limit-cents 5000")
    .example("inference settings --monthly-limit-cents 8000 --reset-circuit")
    .does(async ({ client, output }, flags: SettingsFlags) => {
      const change = given({
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
  given({ rate_limit_rpm: rpm, monthly_token_limit: tokens, expires_at: expiresAt });

function addKeys(keys: CliCommand): void {
  keys
    .command("create <name>")
    .description("make a key; its secret is shown this once")
    .option("--rpm <requests>", "requests in any 60 s", wholeNumber)
    .option("--tokens <tokens>", "tokens in a month (UTC), in and out", wholeNumber)
    .option("--expires-at <time>", "RFC 3339")
    .example("inference keys create app --rpm 60 --tokens 100000")
    .does(async ({ client, output }, name: string, flags: KeyFlags) =>
      output.show(await client.inference.createKey(await organizationOf(client), { name, ...limitsOf(flags) })),
    );

  keys
    .command("list")
    .description("all keys, without their secrets")
    .example("inference keys list")
    .does(async ({ client, output }) =>
      output.list(await take(client.inference.keys(await organizationOf(client))), keyColumns),
    );

  keys
    .command("get <inference-key>")
    .description("one key")
    .example("inference keys get 019a...")
    .does(async ({ client, output }, id: string) =>
      output.show(await client.inference.getKey(await organizationOf(client), id)),
    );

  keys
    .command("update <inference-key>")
    .description("change its name or its limits")
    .option("--name <name>", "another name")
    .option("--rpm <requests>", "requests in any 60 s", wholeNumber)
    .option("--tokens <tokens>", "tokens in a month (UTC), in and out", wholeNumber)
    .option("--expires-at <time>", "RFC 3339")
    .example("inference keys update 019a... --rpm 120")
    .does(async ({ client, output }, id: string, flags: KeyFlags) => {
      const change = { ...limitsOf(flags), ...given({ name: flags.name }) };
      output.show(await client.inference.updateKey(await organizationOf(client), id, change));
    });

  for (const [verb, status, about] of [
    ["suspend", "suspended", "refuse its calls until it is resumed"],
    ["resume", "active", "let its calls through again"],
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
    .description("give a key a new secret, shown this once; the old one is refused at once")
    .option("--yes", "do not ask")
    .example("inference keys rotate 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Give the key ${id} a new secret? The old one is refused at once.`, yes);
      output.show(await client.inference.rotateKey(await organizationOf(client), id));
    });

  keys
    .command("delete <inference-key>")
    .description("revoke a key at once; its usage stays")
    .option("--yes", "do not ask")
    .example("inference keys delete 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Revoke the key ${id}? What uses it is refused at once.`, yes);
      await client.inference.deleteKey(await organizationOf(client), id);
      output.say(`${id} is deleted`);
    });
}

/** Calls the proxy as an application does, with a key that is asked for. */
async function called<T>(
  { settings, terminal, signal }: Context,
  { url }: { readonly url?: string },
  path: string,
  body?: object,
): Promise<T> {
  const base = url ?? settings.inferenceUrl;
  if (base === undefined) throw new UsageError("name the proxy by --url, such as https://inference.example.com/v1");
  const key = await terminal.askSecret("Inference key");
  const { createAuthorityFetch } = await import("../../node/authority-fetch.ts");
  const fetch = settings.caFile === undefined ? globalThis.fetch : createAuthorityFetch(settings.caFile);
  const answer = await fetch(`${base.replace(/\/+$/, "")}/${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
    signal,
  });
  const text = await answer.text();
  if (answer.ok) return JSON.parse(text) as T;
  throw new UsageError(`the proxy answered ${answer.status}: ${messageOf(text)}`);
}

function messageOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: string; code?: string } };
    return `${error?.message ?? text} (${error?.code ?? "no code"})`;
  } catch {
    return text.slice(0, 200);
  }
}
