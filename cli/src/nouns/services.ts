import type { Connection, MaintenanceWindow, ManagedService, ServiceStatus } from "@holdfast/sdk/responses.ts";
import { Option } from "commander";
import type { PoolerChoice, ServiceChange, StorageAutoscaleChoice } from "@holdfast/sdk/requests.ts";
import type { Verb } from "@holdfast/sdk/services.ts";
import type { CliCommand } from "../command.ts";
import { type SnippetLanguage, snippetLanguages } from "../clients/engine-client.ts";
import { engineType, findClient, findConninfoFormat, snippetLanguagesOf } from "../clients/engine-clients.ts";
import { type ConninfoOptions, createConninfo, createSnippet } from "../conninfo.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { omitUndefined, collectPairs, collect, take, hours, integer } from "../flag-values.ts";
import { addFailover } from "./nodes.ts";
import { addDelete } from "./service-deletion.ts";
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
  readonly privateListener?: boolean;
  readonly autoscaleGb?: number;
  readonly layoutMode?: "single-db" | "multi-db";
  readonly serverCollation?: string;
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
  readonly privateListener?: boolean;
  readonly autoscaleGb?: number | false;
}

const statuses: readonly ServiceStatus[] = ["Pending", "Provisioning", "Running", "Stopped", "Upgrading", "Error"];

const poolerModes = ["on", "transaction", "session"];

/** Value of --pooler: on, the mode of the pooler, or off. */
type PoolerFlag = "on" | "transaction" | "session" | "off";

/** Fields of a connection in tables. */
const connectionFields = [
  "host",
  "port",
  "user",
  "database",
  "uri",
  "all_nodes_uri",
  "replica_uri",
  "pooled_uri",
  "private_uri",
  "jdbc_url",
  "ado_connection_string",
  "sqlserver_uri",
  "postgresql_uri",
  "bootstrap_servers",
  "security_protocol",
  "sasl_mechanisms",
  "private_bootstrap_servers",
  "private_security_protocol",
  "private_sasl_mechanisms",
  "ca_certificate",
] as const satisfies readonly (keyof Connection)[];

function isPresent(value: string | number | readonly string[] | null): boolean {
  return value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
}

const layoutModes = ["single-db", "multi-db"];
const replicationModes = ["async", "sync", "sync_strict"];

export function addServices(services: CliCommand): void {
  addCreate(services);

  services
    .command("list")
    .description("list the services of the organization")
    .addOption(new Option("--status <status>", "only services with this status").choices(statuses))
    .option("--type <type>", "only services of this engine", engineType)
    .option("--tag <key:value>", "only services with this tag")
    .option("--deleted", "only deleted services that can be undeleted")
    .example("services list")
    .example("services list --tag team:payments --output json")
    .does(async ({ client, output }, flags: ListFlags) => {
      const { status, type, tag, deleted } = flags;
      const filter = omitUndefined({ status, database_type: type, tag, deleted });
      output.list(await take(client.services.list(filter)), deleted === true ? deletedColumns : serviceColumns);
    });

  services
    .command("get <service>")
    .description("show a service")
    .example("services get orders")
    .does(async ({ output, service }, name: string) => output.show(await service(name), serviceFields));

  services
    .command("connection <service>")
    .description("show what a client needs to connect, except the password")
    .option("--ca", "only print the certificate of the server's authority, as a PEM file")
    .example("services connection orders")
    .example("services connection orders --output json")
    .example("services connection orders --ca > ca.pem")
    .does(async ({ client, output, service, program }, name: string, { ca }: { ca?: boolean }) => {
      const { id, database_type: type } = await service(name);
      const connection = await client.services.connection(id);
      if (ca === true) return output.print(connection.ca_certificate.trimEnd());
      // Other engines have other fields.
      const present = connectionFields.filter((field) => isPresent(connection[field]));
      output.show(connection, present);
      const parameter = findClient(type)?.uriAuthority;
      const use = parameter === undefined ? "" : ` and append &${parameter}=ca.pem to the URI`;
      output.info(`Clients verify the server: ${program} services connection ${name} --ca > ca.pem${use}`);
    });

  addUpdate(services);
  addServiceWait(services);
  addConnect(services);
  addVerb(services, "start", "Running", "start a stopped service");
  addVerb(services, "stop", "Stopped", "stop a service; its data remains stored");
  addVerb(services, "restart", "Running", "restart the engine of a service");

  addServiceSizes(services);

  addDelete(services);
  addFailover(services);
  addServiceCopies(services);
  addServiceMaintenance(services);
  addServiceUpgrade(services);
  addServiceViews(services);
}

function addCreate(services: CliCommand): void {
  const create = services
    .command("create <name>")
    .description("create a service")
    .requiredOption("--type <type>", "engine, such as postgresql or valkey", engineType)
    .option("--plan <plan>", "plan of the catalog", "tier-1")
    .option("--storage-gb <gb>", "size of the disk", integer, 1)
    .option("--engine-version <version>", "version of the engine")
    .option("--storage-tier <tier>", "storage tier of the catalog")
    .option("--zone <zone>", "zone of the service")
    .option("--allow <cidr>", "network that may connect, as CIDR (repeatable)", collect)
    .option("--param <name=value>", "parameter of the engine (repeatable)", collectPairs)
    .option("--tag <key=value>", "tag (repeatable)", collectPairs)
    .option("--ttl-hours <hours>", "delete the service after this time, such as 24 or 7d", hours)
    .option("--deletion-protection", "protect the service from deletion")
    .option("--nodes <count>", "number of nodes, the primary and its replicas, 1 to 5", integer)
    .addOption(
      new Option("--replication-mode <mode>", "replication mode: what a commit waits for").choices(replicationModes),
    )
    .option(
      "--maintenance-window <window>",
      'window in which updates may start, in UTC, such as "sunday 3"',
      windowText,
    );
  create.option("--autoscale-gb <gb>", "grow the storage automatically up to this size", integer);
  create.addOption(new Option("--pooler <mode>", "connection pooler: on, or its mode").choices(poolerModes));
  create.option("--private-listener", "admit clients of the private network without TLS, if the engine can");
  create.addOption(new Option("--layout-mode <mode>", "databases of a T-SQL service; fixed").choices(layoutModes));
  create.option("--server-collation <name>", "order and comparison of texts of a T-SQL service; fixed");
  withWait(create)
    .example("services create orders --type postgresql --plan tier-2 --storage-gb 10 --wait")
    .example("services create orders --type postgresql --nodes 2 --wait")
    .example("services create cache --type valkey --allow 10.1.0.0/16 --tag team=shop")
    .example("services create erp --type tsql --layout-mode multi-db --wait")
    .does(async (context, name: string, flags: CreateFlags) => {
      const created = await context.client.services.create({
        name,
        database_type: flags.type,
        plan_name: flags.plan,
        storage_size_gb: flags.storageGb,
        ...omitUndefined({
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
          private_listener: flags.privateListener,
          storage_autoscale: autoscaleOf(flags.autoscaleGb),
          layout_mode: flags.layoutMode,
          server_collation: flags.serverCollation,
        }),
      });
      const current = flags.wait === true ? await waitForService(context, created, "Running", flags.timeout) : created;
      context.output.show(current ?? created, serviceFields);
      printNextSteps(context, current ?? created);
    });
}

function poolerOf(flag: PoolerFlag | undefined): PoolerChoice | undefined {
  if (flag === undefined) return undefined;
  if (flag === "on" || flag === "off") return { enabled: flag === "on" };
  return { enabled: true, mode: flag };
}

function autoscaleOf(flag: number | false | undefined): StorageAutoscaleChoice | undefined {
  if (flag === undefined) return undefined;
  return flag === false ? { enabled: false } : { enabled: true, max_gb: flag };
}

function addUpdate(services: CliCommand): void {
  services
    .command("update <service>")
    .description("change name, networks, tags, expiry, protection, storage growth, replication or pooler")
    .option("--name <name>", "new name; the host name remains")
    .option("--allow <cidr>", "network that may connect, as CIDR (repeatable); replaces all", collect)
    .option("--no-allow", "allow no network")
    .option("--tag <key=value>", "tag (repeatable); replaces all", collectPairs)
    .option("--no-tag", "remove all tags")
    .option("--ttl-hours <hours>", "delete the service after this time, such as 24 or 7d", hours)
    .option("--no-ttl-hours", "remove the expiry")
    .option("--deletion-protection", "protect the service from deletion")
    .option("--no-deletion-protection", "allow the service's deletion")
    .option("--autoscale-gb <gb>", "grow the storage automatically up to this size", integer)
    .option("--no-autoscale-gb", "grow the storage only on request")
    .addOption(
      new Option("--replication-mode <mode>", "replication mode: what a commit waits for").choices(replicationModes),
    )
    .addOption(new Option("--pooler <mode>", "connection pooler: on, or its mode").choices([...poolerModes, "off"]))
    .option("--private-listener", "admit clients of the private network without TLS, if the engine can")
    .option("--no-private-listener", "require TLS in the private network too")
    .example("services update orders --allow 10.1.0.0/16 --allow 10.2.0.0/16")
    .example("services update orders --no-ttl-hours --deletion-protection")
    .example("services update orders --pooler transaction")
    .example("services update orders --autoscale-gb 100")
    .does(async ({ client, output, serviceId }, name: string, flags: UpdateFlags) => {
      const change: ServiceChange = omitUndefined({
        name: flags.name,
        allowed_cidrs: flags.allow === false ? [] : flags.allow,
        tags: flags.tag === false ? {} : flags.tag,
        ttl_hours: flags.ttlHours === false ? null : flags.ttlHours,
        deletion_protection: flags.deletionProtection,
        replication_mode: flags.replicationMode,
        pooler: poolerOf(flags.pooler),
        private_listener: flags.privateListener,
        storage_autoscale: autoscaleOf(flags.autoscaleGb),
      });
      output.show(await client.services.update(await serviceId(name), change), serviceFields);
    });
}

interface ConnectFlags extends ConninfoOptions {
  readonly conninfo?: boolean;
  readonly snippet?: SnippetLanguage;
}

function addConnect(services: CliCommand): void {
  services
    .command("connect <service> [args...]")
    .description(
      "open the engine's client, such as psql, with a verified connection; arguments after -- are passed to it",
    )
    .option("--user <user>", "user; the default user by default")
    .option("--database <database>", "database; the default database by default")
    .option("--pooled", "connect through the connection pooler of the service")
    .option("--replica", "connect to a replica, for reads; to the primary while there is none")
    .excludes("--replica", "--pooled")
    .option("--conninfo", "only print a connection string for libpq; the password is in a file that only you can read")
    .addOption(
      new Option(
        "--snippet <language>",
        "only print a program that connects; it works before the name resolves on this host. " +
          "PostgreSQL has all but curl, MySQL has node, python, go and java, MongoDB has node, python and go, " +
          "OpenSearch has node, python and curl",
      ).choices(snippetLanguages),
    )
    .excludes("--snippet", "--conninfo")
    .example("services connect orders")
    .example("services connect orders --snippet python > connect.py")
    .example('services connect orders -- -c "SELECT version()"')
    .example("services connect cache -- DBSIZE")
    .example("services connect logs -- /_cat/indices?v")
    .example("services connect orders --user reports --database shop --conninfo")
    .does(async (context, name: string, args: string[], { conninfo, snippet, ...options }: ConnectFlags) => {
      const service = await context.service(name);
      if (snippet !== undefined) {
        if (args.length > 0) throw new UsageError("--snippet starts no client: remove the arguments after --");
        return context.output.print(await createSnippet(context, service, snippet, options));
      }
      if (conninfo === true) {
        if (args.length > 0) throw new UsageError("--conninfo starts no client: remove the arguments after --");
        return context.output.print(await createConninfo(context, service, options));
      }
      const { connectTo } = await import("../connect.ts");
      await connectTo(context, service, { ...options, args });
    });
}

function addVerb(services: CliCommand, verb: Verb, target: "Running" | "Stopped", description: string): void {
  withWait(services.command(`${verb} <service>`))
    .description(description)
    .example(`services ${verb} orders --wait`)
    .does(async (context, name: string, flags: WaitFlags) => {
      const accepted = await context.client.services.command(await context.serviceId(name), verb);
      const current = flags.wait === true ? await waitForService(context, accepted, target, flags.timeout) : accepted;
      context.output.show(current ?? accepted, serviceFields);
    });
}

/** Prints commands to connect to a service, or to wait for it if it does not run yet. */
function printNextSteps({ output, program }: Context, { name, status, database_type: type }: ManagedService): void {
  if (status !== "Running") return output.info(`\nIt is being created: ${program} services wait ${name}`);
  output.info(`\n${program} services connect ${name}`);
  const form = findConninfoFormat(type);
  if (form !== undefined) output.info(form.example(`${program} services connect ${name} --conninfo`));
  const languages = snippetLanguagesOf(type);
  if (languages.length > 0) output.info(`${program} services connect ${name} --snippet ${languages.join("|")}`);
}
