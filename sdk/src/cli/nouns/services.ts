import { Option } from "commander";
import type { MaintenanceWindow } from "../../maintenance-types.ts";
import type { ManagedService, ServiceChange, ServiceStatus } from "../../service-types.ts";
import type { Verb } from "../../services.ts";
import type { CliCommand } from "../command.ts";
import { forgetConninfo, lastingConninfo } from "../conninfo-files.ts";
import type { Context } from "../context.ts";
import { given, pair, several, take, wholeNumber } from "../flag-values.ts";
import { serviceColumns, serviceFields } from "./service-fields.ts";
import { addServiceMaintenance, windowText } from "./service-maintenance.ts";
import { addServiceViews } from "./service-views.ts";
import { addServiceWait, waitForService, type WaitFlags, withWait } from "./service-wait.ts";

interface CreateFlags extends WaitFlags {
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
  readonly maintenanceWindow?: MaintenanceWindow;
}

interface UpdateFlags {
  readonly name?: string;
  readonly allow?: string[] | false;
  readonly tag?: Record<string, string> | false;
  readonly ttlHours?: number | false;
  readonly deletionProtection?: boolean;
}

const statuses: readonly ServiceStatus[] = ["Pending", "Provisioning", "Running", "Stopped", "Upgrading", "Error"];

export function addServices(services: CliCommand): void {
  addCreate(services);

  services
    .command("list")
    .description("the services of the organization")
    .addOption(new Option("--status <status>", "only those with this status").choices(statuses))
    .option("--type <type>", "only those of this engine")
    .option("--tag <key:value>", "only those with this tag")
    .example("services list")
    .example("services list --tag team:payments --output json")
    .does(async ({ client, output }, flags: { status?: ServiceStatus; type?: string; tag?: string }) => {
      const filter = given({ status: flags.status, database_type: flags.type, tag: flags.tag });
      output.list(await take(client.services.list(filter)), serviceColumns);
    });

  services
    .command("get <service>")
    .description("one service, by name or id")
    .example("services get orders")
    .does(async ({ output, service }, name: string) => output.show(await service(name), serviceFields));

  addUpdate(services);
  addServiceWait(services);
  addConnect(services);
  addVerb(services, "start", "Running", "start one that is stopped");
  addVerb(services, "stop", "Stopped", "stop it; its data stays");
  addVerb(services, "restart", "Running", "restart its engine");

  withWait(services.command("delete <service>"))
    .description("delete it with its data")
    .option("--yes", "do not ask")
    .example("services delete orders --wait")
    .does(async (context, name: string, flags: WaitFlags & { yes?: boolean }) => {
      const service = await context.service(name);
      await context.confirm(`Delete ${service.name} and all its data?`, flags.yes);
      const deleted = await context.client.services.delete(service.id);
      forgetConninfo(context, service.id);
      if (flags.wait === true) await waitForService(context, service, "gone", flags.timeout);
      else context.output.show(deleted, serviceFields);
    });

  addServiceMaintenance(services);
  addServiceViews(services);
}

function addCreate(services: CliCommand): void {
  const create = services
    .command("create <name>")
    .description("make a service")
    .requiredOption("--type <type>", "engine, such as postgresql or valkey")
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
    .option("--maintenance-window <window>", 'when updates may begin, in UTC, such as "sunday 3"', windowText);
  withWait(create)
    .example("services create orders --type postgresql --plan tier-2 --storage-gb 10 --wait")
    .example("services create cache --type valkey --allow 10.1.0.0/16 --tag team=shop")
    .does(async (context, name: string, flags: CreateFlags) => {
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
          maintenance_window: flags.maintenanceWindow,
        }),
      });
      const shown = flags.wait === true ? await waitForService(context, made, "Running", flags.timeout) : made;
      context.output.show(shown ?? made, serviceFields);
      sayHowToConnect(context, shown ?? made);
    });
}

function addUpdate(services: CliCommand): void {
  services
    .command("update <service>")
    .description("change its name, networks, tags, end or protection")
    .option("--name <name>", "another name; its host name stays")
    .option("--allow <cidr>", "network that may connect, in place of all before (repeat)", several)
    .option("--no-allow", "no network may connect")
    .option("--tag <key=value>", "tag, in place of all before (repeat)", pair)
    .option("--no-tag", "no tags")
    .option("--ttl-hours <hours>", "delete it after", wholeNumber)
    .option("--no-ttl-hours", "keep it until it is deleted")
    .option("--deletion-protection", "refuse its deletion")
    .option("--no-deletion-protection", "let it be deleted")
    .example("services update orders --allow 10.1.0.0/16 --allow 10.2.0.0/16")
    .example("services update orders --no-ttl-hours --deletion-protection")
    .does(async ({ client, output, serviceId }, name: string, flags: UpdateFlags) => {
      const change: ServiceChange = given({
        name: flags.name,
        allowed_cidrs: flags.allow === false ? [] : flags.allow,
        tags: flags.tag === false ? {} : flags.tag,
        ttl_hours: flags.ttlHours === false ? null : flags.ttlHours,
        deletion_protection: flags.deletionProtection,
      });
      output.show(await client.services.update(await serviceId(name), change), serviceFields);
    });
}

function addConnect(services: CliCommand): void {
  services
    .command("connect <service> [args...]")
    .description("open psql or valkey-cli on it, verified in full; arguments after -- go to the client")
    .option("--user <user>", "another user than the default one")
    .option("--database <database>", "another database than the default one")
    .option("--conninfo", "only print a connection string for libpq; its password is in a file that only you can read")
    .example("services connect orders")
    .example('services connect orders -- -c "SELECT version()"')
    .example("services connect cache -- DBSIZE")
    .does(
      async (
        context,
        name: string,
        args: string[],
        flags: { user?: string; database?: string; conninfo?: boolean },
      ) => {
        const service = await context.service(name);
        if (flags.conninfo === true) return context.output.print(await lastingConninfo(context, service));
        const { connectTo } = await import("../connect.ts");
        await connectTo(context, service, { user: flags.user, database: flags.database, args });
      },
    );
}

function addVerb(services: CliCommand, verb: Verb, target: "Running" | "Stopped", description: string): void {
  withWait(services.command(`${verb} <service>`))
    .description(description)
    .example(`services ${verb} orders --wait`)
    .does(async (context, name: string, flags: WaitFlags) => {
      const accepted = await context.client.services.command(await context.serviceId(name), verb);
      const shown = flags.wait === true ? await waitForService(context, accepted, target, flags.timeout) : accepted;
      context.output.show(shown ?? accepted, serviceFields);
    });
}

/** The lines to paste once it runs. */
function sayHowToConnect({ output, program }: Context, { name, status, database_type: type }: ManagedService): void {
  if (status !== "Running") return output.say(`\nIt is being made: ${program} services wait ${name}`);
  output.say(`\n${program} services connect ${name}`);
  if (type === "postgresql") output.say(`psql "$(${program} services connect ${name} --conninfo)"`);
}
