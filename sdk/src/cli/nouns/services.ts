import type { MaintenanceWindow, ManagedService, ServiceStatus } from "../../answers.ts";
import { Option } from "commander";
import type { PoolerChoice, ServiceChange, StorageAutoscaleChoice } from "../../inputs.ts";
import type { Verb } from "../../services.ts";
import type { CliCommand } from "../command.ts";
import { forgetConninfo, lastingConninfo } from "../conninfo-files.ts";
import type { Context } from "../context.ts";
import { given, pair, several, take, wholeNumber } from "../flag-values.ts";
import { addFailover } from "./nodes.ts";
import { addServiceCopies } from "./service-copies.ts";
import { deletedColumns, serviceColumns, serviceFields } from "./service-fields.ts";
import { addServiceMaintenance, windowText } from "./service-maintenance.ts";
import { addServiceSizes } from "./service-sizes.ts";
import { addServiceUpgrade } from "./service-upgrade.ts";
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
  readonly nodes?: number;
  readonly replicationMode?: string;
  readonly pooler?: PoolerFlag;
  readonly autoscaleGb?: number;
}

interface ListFlags {
  readonly status?: ServiceStatus;
  readonly type?: string;
  readonly tag?: string;
  readonly deleted?: boolean;
}

interface UpdateFlags {
  readonly name?: string;
  readonly allow?: string[] | false;
  readonly tag?: Record<string, string> | false;
  readonly ttlHours?: number | false;
  readonly deletionProtection?: boolean;
  readonly replicationMode?: string;
  readonly pooler?: PoolerFlag;
  readonly autoscaleGb?: number | false;
}

const statuses: readonly ServiceStatus[] = ["Pending", "Provisioning", "Running", "Stopped", "Upgrading", "Error"];

const poolerModes = ["transaction", "session"];

/** The mode of a pooler that is on. */
type PoolerFlag = "transaction" | "session" | "off";

const replicationModes = ["async", "sync", "sync_strict"];

export function addServices(services: CliCommand): void {
  addCreate(services);

  services
    .command("list")
    .description("the services of the organization")
    .addOption(new Option("--status <status>", "only those with this status").choices(statuses))
    .option("--type <type>", "only those of this engine")
    .option("--tag <key:value>", "only those with this tag")
    .option("--deleted", "those that are deleted and can come back")
    .example("services list")
    .example("services list --tag team:payments --output json")
    .does(async ({ client, output }, flags: ListFlags) => {
      const { status, type, tag, deleted } = flags;
      const filter = given({ status, database_type: type, tag, deleted });
      output.list(await take(client.services.list(filter)), deleted === true ? deletedColumns : serviceColumns);
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

  addServiceSizes(services);

  withWait(services.command("delete <service>"))
    .description("delete it with its data; it can be undeleted for 7 days")
    .option("--skip-final-backup", "for good: no last backup, and its automated ones go too")
    .option("--yes", "do not ask")
    .example("services delete orders --wait")
    .does(async (context, name: string, flags: WaitFlags & { yes?: boolean; skipFinalBackup?: boolean }) => {
      const service = await context.service(name);
      const { skipFinalBackup } = flags;
      const extent = skipFinalBackup === true ? "all its data and automated backups, for good" : "all its data";
      await context.confirm(`Delete ${service.name} and ${extent}?`, flags.yes);
      const deleted = await context.client.services.delete(service.id, { skipFinalBackup });
      forgetConninfo(context, service.id);
      if (flags.wait === true) await waitForService(context, service, "gone", flags.timeout);
      else context.output.show(deleted, serviceFields);
    });

  addFailover(services);
  addServiceCopies(services);
  addServiceMaintenance(services);
  addServiceUpgrade(services);
  addServiceViews(services);
}

function addCreate(services: CliCommand): void {
  const create = services
    .command("create <name>")
    .description("make a service")
    .requiredOption("--type <type>", "engine, such as postgresql or valkey")
    .option("--plan <plan>", "plan of the catalog", "tier-1")
    .option("--storage-gb <gb>", "size of its disk", wholeNumber, 1)
    .option("--engine-version <version>", "version of the engine")
    .option("--storage-tier <tier>", "kind of disk")
    .option("--zone <zone>", "where it runs")
    .option("--allow <cidr>", "network that may connect (repeat)", several)
    .option("--param <name=value>", "parameter of the engine (repeat)", pair)
    .option("--tag <key=value>", "tag (repeat)", pair)
    .option("--ttl-hours <hours>", "delete it after", wholeNumber)
    .option("--deletion-protection", "refuse its deletion")
    .option("--nodes <count>", "a primary and its replicas together, 1 to 5", wholeNumber)
    .addOption(new Option("--replication-mode <mode>", "what a commit waits for").choices(replicationModes))
    .option("--maintenance-window <window>", 'when updates may begin, in UTC, such as "sunday 3"', windowText);
  create.option("--autoscale-gb <gb>", "let its storage grow by itself up to this", wholeNumber);
  create.addOption(new Option("--pooler <mode>", "let clients share sessions of the engine").choices(poolerModes));
  withWait(create)
    .example("services create orders --type postgresql --plan tier-2 --storage-gb 10 --wait")
    .example("services create orders --type postgresql --nodes 2 --wait")
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
          node_count: flags.nodes,
          replication_mode: flags.replicationMode,
          pooler: poolerOf(flags.pooler),
          storage_autoscale: autoscaleOf(flags.autoscaleGb),
        }),
      });
      const shown = flags.wait === true ? await waitForService(context, made, "Running", flags.timeout) : made;
      context.output.show(shown ?? made, serviceFields);
      sayHowToConnect(context, shown ?? made);
    });
}

function poolerOf(flag: PoolerFlag | undefined): PoolerChoice | undefined {
  if (flag === undefined) return undefined;
  return flag === "off" ? { enabled: false } : { enabled: true, mode: flag };
}

function autoscaleOf(flag: number | false | undefined): StorageAutoscaleChoice | undefined {
  if (flag === undefined) return undefined;
  return flag === false ? { enabled: false } : { enabled: true, max_gb: flag };
}

function addUpdate(services: CliCommand): void {
  services
    .command("update <service>")
    .description("change its name, networks, tags, end, protection, growth, replication or pooler")
    .option("--name <name>", "another name; its host name stays")
    .option("--allow <cidr>", "network that may connect, in place of all before (repeat)", several)
    .option("--no-allow", "no network may connect")
    .option("--tag <key=value>", "tag, in place of all before (repeat)", pair)
    .option("--no-tag", "no tags")
    .option("--ttl-hours <hours>", "delete it after", wholeNumber)
    .option("--no-ttl-hours", "keep it until it is deleted")
    .option("--deletion-protection", "refuse its deletion")
    .option("--no-deletion-protection", "let it be deleted")
    .option("--autoscale-gb <gb>", "let its storage grow by itself up to this", wholeNumber)
    .option("--no-autoscale-gb", "let it grow when it is asked for alone")
    .addOption(new Option("--replication-mode <mode>", "what a commit waits for").choices(replicationModes))
    .addOption(
      new Option("--pooler <mode>", "let clients share sessions of the engine").choices([...poolerModes, "off"]),
    )
    .example("services update orders --allow 10.1.0.0/16 --allow 10.2.0.0/16")
    .example("services update orders --no-ttl-hours --deletion-protection")
    .example("services update orders --pooler transaction")
    .example("services update orders --autoscale-gb 100")
    .does(async ({ client, output, serviceId }, name: string, flags: UpdateFlags) => {
      const change: ServiceChange = given({
        name: flags.name,
        allowed_cidrs: flags.allow === false ? [] : flags.allow,
        tags: flags.tag === false ? {} : flags.tag,
        ttl_hours: flags.ttlHours === false ? null : flags.ttlHours,
        deletion_protection: flags.deletionProtection,
        replication_mode: flags.replicationMode,
        pooler: poolerOf(flags.pooler),
        storage_autoscale: autoscaleOf(flags.autoscaleGb),
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
