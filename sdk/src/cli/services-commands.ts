import type { Command } from "commander";
import type { Verb } from "../services.ts";
import type { ManagedService } from "../types.ts";
import { ServiceFailed, waitFor } from "../wait.ts";
import { connectTo, forgetConninfo, lastingConninfo } from "./connect.ts";
import { type CliDeps, type Context, openContext } from "./context.ts";
import { UsageError } from "./exit-code.ts";
import { given, pair, several, wholeNumber } from "./flag-values.ts";

const columns = ["name", "status", "database_type", "version", "plan_name", "hostname", "port", "created_at"];
const fields = [
  "id",
  "name",
  "status",
  "database_type",
  "version",
  "plan_name",
  "storage_size_gb",
  "storage_tier",
  "zone",
  "hostname",
  "port",
  "allowed_cidrs",
  "deletion_protection",
  "expires_at",
  "tags",
  "created_at",
  "error",
];

interface CreateFlags {
  readonly type: string;
  readonly plan: string;
  readonly storageGb: number;
  readonly engineVersion?: string;
  readonly storageTier?: string;
  readonly zone?: string;
  readonly allow?: string[];
  readonly param?: Record<string, string>;
  readonly tag?: Record<string, string>;
  readonly ttlHours?: number;
  readonly deletionProtection?: boolean;
}

interface WaitFlags {
  readonly wait?: boolean;
  readonly timeout: number;
}

export function addServicesCommands(program: Command, deps: CliDeps): void {
  const services = program.command("services").description("managed databases");
  const withWait = (command: Command) =>
    command
      .option("--wait", "wait until it is done")
      .option("--timeout <seconds>", "give up waiting after", wholeNumber, 900);

  withWait(
    services
      .command("create <name>")
      .description("make a service")
      .requiredOption("--type <type>", "postgresql or valkey")
      .option("--plan <plan>", "plan of the catalogue", "tier-1")
      .option("--storage-gb <gb>", "size of its disk", wholeNumber, 1)
      .option("--engine-version <version>", "version of the engine")
      .option("--storage-tier <tier>", "kind of disk")
      .option("--zone <zone>", "where it runs")
      .option("--allow <cidr>", "network that may connect (repeat)", several)
      .option("--param <name=value>", "parameter of the engine (repeat)", pair)
      .option("--tag <key=value>", "tag (repeat)", pair)
      .option("--ttl-hours <hours>", "delete it after", wholeNumber)
      .option("--deletion-protection", "refuse its deletion")
      .addHelpText(
        "after",
        "\nExample:\n  holdfast services create orders --type postgresql --plan tier-2 --storage-gb 10 --wait",
      ),
  ).action(async (name: string, flags: CreateFlags & WaitFlags, command: Command) => {
    const context = openContext(command, deps);
    const made = await context.client.services.create({
      name,
      database_type: flags.type,
      plan_name: flags.plan,
      storage_size_gb: flags.storageGb,
      ...given({
        version: flags.engineVersion,
        storage_tier: flags.storageTier,
        zone: flags.zone,
        allowed_cidrs: flags.allow,
        parameters: flags.param,
        tags: flags.tag,
        ttl_hours: flags.ttlHours,
        deletion_protection: flags.deletionProtection,
      }),
    });
    const shown = flags.wait === true ? await wait(context, made, "Running", flags) : made;
    context.output.show(shown ?? made, fields);
    await sayHowToConnect(context, shown ?? made);
  });

  services
    .command("list")
    .description("the services of the organization")
    .option("--status <status>")
    .option("--type <type>")
    .option("--tag <key:value>")
    .action(async (flags: { status?: string; type?: string; tag?: string }, command: Command) => {
      const context = openContext(command, deps);
      const found: ManagedService[] = [];
      const filter = given({ status: flags.status, database_type: flags.type, tag: flags.tag });
      for await (const service of context.client.services.list(filter, { signal: deps.signal })) found.push(service);
      context.output.list(found, columns);
    });

  services
    .command("get <name>")
    .description("one service, by name or id")
    .action(async (name: string, _flags: object, command: Command) => {
      const context = openContext(command, deps);
      context.output.show(await context.service(name), fields);
    });

  services
    .command("wait <name>")
    .description("wait until it is Running, Stopped or gone")
    .option("--for <status>", "Running, Stopped or gone", "Running")
    .option("--timeout <seconds>", "give up after", wholeNumber, 900)
    .action(async (name: string, flags: WaitFlags & { for: string }, command: Command) => {
      if (flags.for !== "Running" && flags.for !== "Stopped" && flags.for !== "gone")
        throw new UsageError("--for is Running, Stopped or gone");
      const context = openContext(command, deps);
      const service = await wait(context, await context.service(name), flags.for, flags);
      if (service !== undefined) context.output.show(service, fields);
    });

  services
    .command("connect <name> [args...]")
    .description("open psql or valkey-cli on it, verified in full; arguments after -- go to the client")
    .option("--user <user>", "another user than the default one")
    .option("--database <database>", "another database than the default one")
    .option("--conninfo", "only print a connection string for libpq; its password is in a file that only you can read")
    .action(
      async (
        name: string,
        args: string[],
        flags: { user?: string; database?: string; conninfo?: boolean },
        command: Command,
      ) => {
        const context = openContext(command, deps);
        const service = await context.service(name);
        if (flags.conninfo === true) context.output.print(await lastingConninfo(context, service, true));
        else await connectTo(context, service, { user: flags.user, database: flags.database, args });
      },
    );

  for (const [verb, target] of [
    ["start", "Running"],
    ["stop", "Stopped"],
    ["restart", "Running"],
  ] as const) {
    withWait(services.command(`${verb} <name>`).description(`${verb} it`)).action(
      async (name: string, flags: WaitFlags, command: Command) =>
        runVerb(openContext(command, deps), name, verb, target, flags),
    );
  }

  withWait(
    services.command("delete <name>").description("delete it with its data").option("--yes", "do not ask"),
  ).action(async (name: string, flags: WaitFlags & { yes?: boolean }, command: Command) => {
    const context = openContext(command, deps);
    const service = await context.service(name);
    if (flags.yes !== true && !(await deps.confirm(`Delete ${service.name} and all its data?`)))
      throw new UsageError("not deleted; --yes skips the question");
    const deleted = await context.client.services.delete(service.id);
    forgetConninfo(context, service.id);
    if (flags.wait === true) await wait(context, service, "gone", flags);
    else context.output.show(deleted, fields);
  });
}

async function runVerb(
  context: Context,
  name: string,
  verb: Verb,
  target: "Running" | "Stopped",
  flags: WaitFlags,
): Promise<void> {
  const accepted = await context.client.services.command((await context.service(name)).id, verb);
  const shown = flags.wait === true ? await wait(context, accepted, target, flags) : accepted;
  context.output.show(shown ?? accepted, fields);
}

async function wait(
  context: Context,
  service: ManagedService,
  target: "Running" | "Stopped" | "gone",
  { timeout }: { timeout: number },
) {
  const progress = context.progress(service.name);
  try {
    return await waitFor(context.client.services, service.id, target, {
      timeoutMs: timeout * 1000,
      signal: context.signal,
      onProgress: (summary) => progress.update(summary),
    });
  } catch (error) {
    if (error instanceof ServiceFailed) error.message = `${service.name}: ${error.message}`;
    throw error;
  } finally {
    progress.end();
  }
}

/** The line to paste once it runs. */
async function sayHowToConnect(context: Context, service: ManagedService): Promise<void> {
  if (service.status !== "Running")
    return context.output.say(`\nIt is being made: holdfast services wait ${service.name}`);
  if (service.database_type === "postgresql")
    context.output.say(`\npsql "${await lastingConninfo(context, service, false)}"`);
  context.output.say(`holdfast services connect ${service.name}`);
}
