import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { Command } from "commander";
import { type CliDeps, openContext } from "./context.ts";
import { UsageError } from "./exit-code.ts";
import { given, several, wholeNumber } from "./flag-values.ts";

interface ListCommand {
  readonly name: string;
  readonly description: string;
  readonly service: string;
  readonly method: string;
  /** Member of the answer that is the list. */
  readonly plural: string;
  readonly columns: readonly string[];
  readonly paged: boolean;
}

// biome-ignore format: a table, aligned so that it reads as one
const lists: readonly ListCommand[] = [
  { name: "machines",    description: "machines of the installation",                service: "FleetService",        method: "ListMachines",      plural: "machines",      columns: ["id", "ownerKind", "ownerId", "state", "desired", "address", "zone", "diskGb", "reason"], paged: true },
  { name: "tasks",       description: "work for machines, of the last day",          service: "FleetService",        method: "ListTasks",         plural: "tasks",         columns: ["id", "kind", "machineId", "status", "lane", "generation", "createdAt", "error"],          paged: true },
  { name: "sessions",    description: "streams of agents",                           service: "FleetService",        method: "ListSessions",      plural: "sessions",      columns: ["machineId", "controllerId", "connectedAt", "agentVersion"],                               paged: true },
  { name: "terms",       description: "term and primary of each service",            service: "FleetService",        method: "ListTerms",         plural: "terms",         columns: ["serviceId", "term", "primaryNodeId"],                                                     paged: true },
  { name: "controllers", description: "running controllers",                         service: "ControlService",      method: "ListControllers",   plural: "controllers",   columns: ["id", "address", "startedAt", "shards", "sessions", "draining"],                           paged: false },
  { name: "holds",       description: "what is held back after a restore or a clock step", service: "ControlService", method: "ListHolds",         plural: "holds",         columns: ["kind", "reason", "since"],                                                                paged: false },
  { name: "audit",       description: "who did what, newest first",                  service: "OrganizationService", method: "ListAuditEntries",  plural: "entries",       columns: ["time", "actor", "source", "action", "objectKind", "objectId", "result"],                  paged: true },
];

/** Calls of holdfast.admin.v1, which takes platform operators only. */
export function addAdminCommands(program: Command, deps: CliDeps): void {
  const admin = program.command("admin").description("for operators of the platform");

  const listed = async (
    command: Command,
    { service, method, plural, columns, paged }: Omit<ListCommand, "name" | "description">,
    request: object,
    limit: number,
  ) => {
    const context = openContext(command, deps);
    const found: object[] = [];
    let cursor: string | undefined;
    do {
      const page = paged ? { page: { limit: Math.min(limit, 200), ...given({ cursor }) } } : {};
      const answer = await context.operator.admin<Record<string, unknown>>(service, method, { ...request, ...page });
      found.push(...((answer[plural] ?? []) as object[]));
      cursor = (answer.nextCursor as string | undefined) || undefined;
    } while (cursor !== undefined && found.length < limit);
    context.output.list(found.slice(0, limit), columns);
  };

  for (const list of lists) {
    const command = admin.command(list.name).description(list.description);
    if (list.paged) command.option("--limit <count>", "at most so many", wholeNumber, 1_000);
    if (list.name === "tasks") command.option("--machine <id>", "of one machine");
    if (list.name === "audit") command.option("--organization <id>", "of one organization");
    command.action((flags: { limit?: number; machine?: string; organization?: string }, run: Command) =>
      listed(run, list, given({ machineId: flags.machine, organizationId: flags.organization }), flags.limit ?? 1_000),
    );
  }

  admin
    .command("orphans")
    .description("machines that nothing owns; without --sweep it only looks")
    .option("--sweep", "stop those with data for 7 days, remove the others")
    .action(async ({ sweep }: { sweep?: boolean }, command: Command) => {
      const context = openContext(command, deps);
      const { orphans = [] } = await context.operator.admin<{ orphans?: object[] }>("FleetService", "SweepOrphans", {
        dryRun: sweep !== true,
      });
      context.output.list(orphans, ["machineId", "hasData", "action", "keptUntil"]);
    });

  admin
    .command("drain <controller>")
    .description("have a controller give up its keys and agents")
    .action(async (controllerId: string, _flags: object, command: Command) => {
      const context = openContext(command, deps);
      await context.operator.admin("ControlService", "DrainController", { controllerId });
      context.output.say(`${controllerId} gives up its keys`);
    });

  admin
    .command("release-hold <kind>")
    .description("confirm that what is held back may go on")
    .action(async (kind: string, _flags: object, command: Command) => {
      const context = openContext(command, deps);
      await context.operator.admin("ControlService", "ReleaseHold", { kind });
      context.output.say(`${kind} is released`);
    });

  addOrganizations(admin, deps, listed);
  addBackup(admin, deps);
}

type Listed = (
  command: Command,
  list: Omit<ListCommand, "name" | "description">,
  request: object,
  limit: number,
) => Promise<void>;

function addOrganizations(admin: Command, deps: CliDeps, listed: Listed): void {
  const orgs = admin.command("orgs").description("organizations");
  const orgList = {
    service: "OrganizationService",
    method: "ListOrganizations",
    plural: "organizations",
    columns: ["id", "name", "quota", "createdAt"],
    paged: true,
  };
  orgs
    .command("list")
    .description("all organizations")
    .action((_flags: object, command: Command) => listed(command, orgList, {}, 1_000));
  orgs
    .command("create <name>")
    .description("make an organization")
    .option("--services <count>", "how many services it may have", wholeNumber)
    .action(async (name: string, flags: { services?: number }, command: Command) => {
      const context = openContext(command, deps);
      const quota = flags.services === undefined ? {} : { quota: { services: flags.services } };
      context.output.show(
        await context.operator.admin<object>("OrganizationService", "CreateOrganization", { name, ...quota }),
        orgList.columns,
      );
    });

  const keys = admin.command("keys").description("API keys of organizations");
  const keyList = {
    service: "OrganizationService",
    method: "ListApiKeys",
    plural: "apiKeys",
    columns: ["id", "name", "organizationId", "scopes", "expiresAt", "createdAt"],
    paged: true,
  };
  keys
    .command("list")
    .description("all keys, without their secrets")
    .option("--organization <id>", "of one organization")
    .action((flags: { organization?: string }, command: Command) =>
      listed(command, keyList, given({ organizationId: flags.organization }), 1_000),
    );
  keys
    .command("create <organization> <name>")
    .description("make a key; its secret is shown this once")
    .option("--scope <scope>", "such as services:read (repeat); none means all of an owner", several)
    .option("--expires-at <time>", "RFC 3339")
    .action(
      async (
        organizationId: string,
        name: string,
        flags: { scope?: string[]; expiresAt?: string },
        command: Command,
      ) => {
        const context = openContext(command, deps);
        const request = { organizationId, name, ...given({ scopes: flags.scope, expiresAt: flags.expiresAt }) };
        const { apiKey, secret } = await context.operator.admin<{ apiKey: object; secret: string }>(
          "OrganizationService",
          "CreateApiKey",
          request,
        );
        context.output.show({ ...apiKey, secret });
      },
    );
  keys
    .command("revoke <id>")
    .description("end a key at once")
    .action(async (id: string, _flags: object, command: Command) => {
      const context = openContext(command, deps);
      await context.operator.admin("OrganizationService", "RevokeApiKey", { id });
      context.output.say(`${id} is revoked`);
    });
}

/** What the local installation gives for `admin restore`; it runs while the platform is down. */
interface LocalRestore {
  restoreControlPlane(options: {
    readonly dataDirectory: string;
    readonly backupId: string | undefined;
    readonly signal: AbortSignal;
  }): Promise<void>;
}

function addBackup(admin: Command, deps: CliDeps): void {
  admin
    .command("backup")
    .description("write a sealed snapshot of the control plane to the object store")
    .action(async (_flags: object, command: Command) => {
      const context = openContext(command, deps);
      context.output.show(await context.operator.admin<object>("ControlService", "BackupControlPlane"));
    });
  admin
    .command("restore [backup]")
    .description(
      "set the control plane of this host's installation back, the newest backup by default; stop the platform first",
    )
    .option("--yes", "do not ask")
    .action(async (backupId: string | undefined, { yes }: { yes?: boolean }, command: Command) => {
      const dataDirectory =
        command.optsWithGlobals<{ data?: string }>().data ?? deps.environment.HOLDFAST_DATA ?? deps.defaultDirectory;
      const module = new URL("../../../local/src/restore-control-plane.ts", import.meta.url);
      if (!existsSync(module)) throw new UsageError("this build has no restore");
      if (yes !== true && !(await deps.confirm(`Set the control plane in ${dataDirectory} back?`)))
        throw new UsageError("not restored; --yes skips the question");
      const { restoreControlPlane } = (await import(pathToFileURL(module.pathname).href)) as LocalRestore;
      await restoreControlPlane({ dataDirectory, backupId, signal: deps.signal });
    });
}
