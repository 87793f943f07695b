import { setTimeout as delay } from "node:timers/promises";
import { InvalidArgumentError, Option } from "commander";
import type { DestinationType, ExportDataType, MetricsExport } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { omitUndefined, collectPairs, collect, take, seconds } from "../flag-values.ts";
import { readSecrets } from "../secret-value.ts";

const columns = [
  "id",
  "name",
  "is_enabled",
  "destination_type",
  "service_id",
  "consecutive_failures",
  "last_export_at",
  "last_export_error",
];
const types: readonly DestinationType[] = [
  "apm_platform",
  "prometheus_remote_write",
  "otlp",
  "search_cluster",
  "log_aggregator",
  "log_saas",
  "cloud_monitoring",
];
/** Products by their type. */
const products: Readonly<Record<string, DestinationType>> = {
  datadog: "apm_platform",
  prometheus: "prometheus_remote_write",
  elasticsearch: "search_cluster",
  loki: "log_aggregator",
  betterstack: "log_saas",
  cloudwatch: "cloud_monitoring",
};

/** The flag --to, with the name of a product or its type. */
function destination(about: string): Option {
  const names = [...Object.keys(products), ...types];
  return new Option("--to <type>", about).choices(names).argParser((text: string): DestinationType => {
    const type = types.find((each) => each === (Object.hasOwn(products, text) ? products[text] : text));
    if (type === undefined) throw new InvalidArgumentError(`Allowed choices are ${names.join(", ")}.`);
    return type;
  });
}

const dataTypes: readonly ExportDataType[] = ["metrics", "logs", "both"];
/** Types that accept only logs or only metrics. */
const onlyData: Partial<Record<DestinationType, ExportDataType>> = {
  log_aggregator: "logs",
  log_saas: "logs",
  prometheus_remote_write: "metrics",
};
/** Secret keys, which are refused as arguments because other users of the host could see them. */
const secretKeys: ReadonlySet<string> = new Set([
  "api_key",
  "password",
  "bearer_token",
  "source_token",
  "secret_access_key",
  "headers",
]);
const pollIntervalMs = 5_000;

interface ConfigurationFlags {
  readonly set?: Readonly<Record<string, string>>;
  readonly ask?: readonly string[];
  readonly fromFile?: Readonly<Record<string, string>>;
}

interface ChangeFlags extends ConfigurationFlags {
  readonly name?: string;
  readonly export?: ExportDataType;
  readonly interval?: number;
}

interface CreateFlags extends ChangeFlags {
  readonly to: DestinationType;
  readonly service?: string;
}

export function addExports(exports: CliCommand): void {
  withConfiguration(exports.command("create"))
    .description("export metrics and logs of one service, or of all services, to a destination")
    .addOption(destination("product or type of the destination").makeOptionMandatory())
    .option("--service <service>", "service; all services of the organization by default")
    .option("--name <name>", "name of the integration; the type by default")
    .addOption(new Option("--export <data>", "exported data").choices(dataTypes))
    .option("--interval <duration>", "interval of exports, 30s to 1h", seconds)
    .example(
      "exports create --to prometheus_remote_write --set url=https://prometheus.example/api/v1/write --service orders",
    )
    .example("exports create --to otlp --set endpoint=https://otlp.example --ask headers.x-api-key --export both")
    .example("exports create --to log_saas --from-file source_token=token.txt")
    .does(async (context, flags: CreateFlags) => {
      const { client, output, monitoredId } = context;
      const created = await client.exports.create({
        name: flags.name ?? flags.to,
        destination_type: flags.to,
        data_type: flags.export ?? onlyData[flags.to] ?? "metrics",
        configuration: await configurationOf(flags, context),
        ...omitUndefined({ export_interval_seconds: flags.interval }),
        ...(flags.service !== undefined && { service_id: await monitoredId(flags.service) }),
      });
      output.show(created);
    });

  exports
    .command("list")
    .description("list all integrations with their state")
    .option("--service <service>", "only integrations of this service")
    .addOption(destination("only integrations of this product or type"))
    .example("exports list")
    .does(async ({ client, output, monitoredId }, flags: { service?: string; to?: DestinationType }) => {
      const filter = {
        ...omitUndefined({ destination_type: flags.to }),
        ...(flags.service !== undefined && { service_id: await monitoredId(flags.service) }),
      };
      output.list(await take(client.exports.list(filter)), columns);
    });

  exports
    .command("get <integration>")
    .description("show an integration, with masked secrets")
    .example("exports get 019a...")
    .does(async ({ client, output }, id: string) => output.show(await client.exports.get(id)));

  withConfiguration(exports.command("update <integration>"))
    .description("change an integration; a new destination needs its secrets again")
    .option("--name <name>", "new name")
    .addOption(new Option("--export <data>", "exported data").choices(dataTypes))
    .option("--interval <duration>", "interval of exports, 30s to 1h", seconds)
    .example("exports update 019a... --interval 30")
    .does(async (context, id: string, flags: ChangeFlags) => {
      const configuration = await configurationOf(flags, context);
      const change = omitUndefined({
        name: flags.name,
        data_type: flags.export,
        export_interval_seconds: flags.interval,
        configuration: Object.keys(configuration).length === 0 ? undefined : configuration,
      });
      context.output.show(await context.client.exports.update(id, change));
    });

  for (const [verb, about] of [
    ["enable", "resume an integration where it stopped, and reset its failures"],
    ["disable", "pause an integration; unsent data are stored for 24 hours"],
  ] as const)
    exports
      .command(`${verb} <integration>`)
      .description(about)
      .example(`exports ${verb} 019a...`)
      .does(async ({ client, output }, id: string) => output.show(await client.exports[verb](id)));

  exports
    .command("test <integration>")
    .description("test the connection to the destination without data")
    .example("exports test 019a...")
    .does(async ({ client, output }, id: string) => output.show(await client.exports.test(id)));

  exports
    .command("delete <integration>")
    .description("delete an integration; unsent data are discarded")
    .option("--yes", "do not ask for confirmation")
    .example("exports delete 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Delete the integration ${id}?`, yes);
      await client.exports.delete(id);
      output.info(`${id} is deleted`);
    });

  exports
    .command("watch <integration>")
    .description("print a line at each change, until Ctrl-C")
    .example("exports watch 019a...")
    .does(async ({ client, output, signal }, id: string) => {
      for (let before = ""; ; ) {
        const now = await client.exports.get(id, { signal });
        const line = lineOf(now);
        if (line !== before) output.entry(now, line);
        before = line;
        await delay(pollIntervalMs, undefined, { signal });
      }
    });
}

function withConfiguration(command: CliCommand): CliCommand {
  return command
    .option("--set <key=value>", "key of the configuration (repeatable); in a map such as tags.team=core", collectPairs)
    .option("--ask <key>", "key whose value is asked for (repeatable)", collect)
    .option(
      "--from-file <key=file>",
      "key whose value is in a file, or in standard input for - (repeatable)",
      collectPairs,
    );
}

async function configurationOf(
  { set = {}, ask = [], fromFile = {} }: ConfigurationFlags,
  context: Pick<Context, "terminal">,
): Promise<Record<string, unknown>> {
  const configuration: Record<string, unknown> = {};
  for (const [key, text] of Object.entries(set)) {
    if (secretKeys.has(key.split(".")[0] ?? ""))
      throw new UsageError(`${key} is a secret: use --ask ${key}, which asks for it, or --from-file ${key}=FILE`);
    put(configuration, key, valueOf(text));
  }
  const secrets = await readSecrets(context, { ask, files: fromFile, titleOf: (key) => key });
  for (const [key, secret] of Object.entries(secrets)) put(configuration, key, secret);
  return configuration;
}

/** Sets a key; `tags.team` is the member `team` of the map `tags`. */
function put(configuration: Record<string, unknown>, key: string, value: unknown): void {
  const dot = key.indexOf(".");
  if (dot < 0) {
    configuration[key] = value;
    return;
  }
  const name = key.slice(0, dot);
  const map = (Object.hasOwn(configuration, name) ? configuration[name] : {}) as Readonly<Record<string, unknown>>;
  configuration[name] = { ...map, [key.slice(dot + 1)]: String(value) };
}

function valueOf(text: string): string | number | boolean | null {
  if (text === "true" || text === "false") return text === "true";
  if (text === "") return null;
  return /^\d{1,9}$/.test(text) ? Number(text) : text;
}

function lineOf({ is_enabled: on, exported, last_export_at: at, last_export_error: error, ...rest }: MetricsExport) {
  const state = on ? (error ?? "ok") : (rest.disabled_reason ?? "disabled");
  const figures = `${exported.samples} samples, ${exported.log_entries} log entries, ${rest.backlog_seconds} s behind`;
  return `${at ?? "never"}  ${figures}  ${state}`;
}
