import type { ManagedService, Operation } from "@holdfast/sdk/responses.ts";
import { InvalidArgumentError } from "commander";
import type { CliCommand } from "../command.ts";
import { findClient } from "../clients/engine-clients.ts";
import type { Context } from "../context.ts";
import { omitUndefined, integer, timeOrAge } from "../flag-values.ts";
import { withSource } from "./restore-moments.ts";
import { serviceFields } from "./service-fields.ts";
import { waitForService, type WaitFlags, withWait } from "./service-wait.ts";

interface RestoreFlags extends WaitFlags {
  readonly name: string;
  readonly to?: string;
  readonly backup?: string;
  readonly plan?: string;
  readonly zone?: string;
  readonly storageGb?: number;
  readonly nodes?: number;
}

interface ForkFlags extends WaitFlags {
  readonly name?: string;
  readonly backup?: string;
  readonly nodes?: number;
}

const nodesFlag = ["--nodes <count>", "number of nodes, the primary and new replicas, 1 to 5; 1 by default"] as const;

/** Commands that create services from backups. */
export function addServiceCopies(services: CliCommand): void {
  withWait(services.command("restore <service>"))
    .description("create a service with the data of another one, as of a time or of a backup, without its replicas")
    .requiredOption("--name <name>", "name of the new service")
    .option("--to <time>", "time of the data: RFC 3339 with Z or an offset, or an age such as 30m", timeOrAge)
    .option("--backup <backup-id>", "completed backup, instead of a time")
    .option("--plan <plan>", "plan; the original service's plan by default")
    .option("--zone <zone>", "zone; the original service's zone by default")
    .option("--storage-gb <gb>", "storage size, at least as large as the original service's", integer)
    .option(...nodesFlag, integer)
    .example("services restore orders --to 2026-11-22T10:00:00Z --name orders-before --wait")
    .example("services restore orders --backup 0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42 --name orders-copy")
    .does(async (context, name: string, flags: RestoreFlags) => {
      if ((flags.to === undefined) === (flags.backup === undefined))
        throw new InvalidArgumentError("use either --to with a time, or --backup with the id of a backup");
      const { backups } = context.client;
      const id = await context.serviceId(name);
      const choice = omitUndefined({
        plan_name: flags.plan,
        zone: flags.zone,
        storage_size_gb: flags.storageGb,
        node_count: flags.nodes,
      });
      const request = { target_service_name: flags.name, ...choice };
      const created =
        flags.backup === undefined
          ? await backups.restoreTo(id, flags.to ?? "", request)
          : await backups.restore(id, flags.backup, request);
      await showCreated(context, created, flags);
      noteOmissions(context, created, flags.nodes);
    });

  withWait(services.command("fork <service> [name]"))
    .description("create a copy of a service from its newest backup, without its replicas")
    .option("--name <name>", "name of the new service, as in `services restore`")
    .option("--backup <backup-id>", "completed backup to use")
    .option(...nodesFlag, integer)
    .example("services fork orders --name orders-staging --wait")
    .does(async (context, name: string, positional: string | undefined, flags: ForkFlags) => {
      const target = flags.name ?? positional;
      if (target === undefined || (flags.name !== undefined && positional !== undefined))
        throw new InvalidArgumentError("name the new service once: --name <name>");
      const id = await context.serviceId(name);
      const options = { backupId: flags.backup, nodeCount: flags.nodes };
      const created = await context.client.services.fork(id, target, options);
      await showCreated(context, created, flags);
      noteOmissions(context, created, flags.nodes);
    });

  withWait(services.command("undelete <service-id>"))
    .description("create a deleted service again, with its hostname and passwords; services list --deleted has the ids")
    .option("--name <name>", "new name, when the former one is taken")
    .example("services undelete 0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10 --wait")
    .does(async (context, id: string, flags: WaitFlags & { name?: string }) =>
      showCreated(context, await context.client.services.undelete(id, { name: flags.name }), flags),
    );
}

/** Prints which replicas and passwords of its source a copy lacks, with the commands that add them. */
function noteOmissions({ output, program }: Context, copy: ManagedService, nodes = 1): void {
  const { electsLeader, hasManagedUsersOnly } = findClient(copy.database_type) ?? {};
  const isAlone = nodes === 1;
  const lacksPasswords = hasManagedUsersOnly !== true;
  const users = "sers that `users list` shows with managed=false have no password:";
  if (isAlone && lacksPasswords) output.info(`\nThe copy has no replicas, and u${users}`);
  else if (isAlone) output.info("\nThe copy has no replicas:");
  else if (lacksPasswords) output.info(`\nU${users}`);
  if (isAlone) output.info(`${program} nodes add ${copy.name}${electsLeader === true ? " --count 2" : ""}`);
  if (lacksPasswords) output.info(`${program} users password ${copy.name} USER --reset`);
}

const copyFields = [...serviceFields, "restored_from", "restores_to"];

async function showCreated(context: Context, created: ManagedService, flags: WaitFlags): Promise<void> {
  const current = flags.wait === true ? await waitForService(context, created, "Running", flags.timeout) : created;
  const copy = current ?? created;
  context.output.show(context.output.format === "table" ? withSource(copy) : copy, copyFields);
  if (flags.wait !== true || created.operation === null) return;
  // An installation of an earlier release returns no warnings.
  const { warnings }: Partial<Operation> = await context.client.operations.get(created.operation.id);
  for (const warning of warnings ?? []) context.output.info(warning);
}
