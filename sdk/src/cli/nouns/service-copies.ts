import type { ManagedService, Operation } from "../../answers.ts";
import { InvalidArgumentError } from "commander";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { given, wholeNumber } from "../flag-values.ts";
import { serviceFields } from "./service-fields.ts";
import { waitForService, type WaitFlags, withWait } from "./service-wait.ts";

interface RestoreFlags extends WaitFlags {
  readonly name: string;
  readonly to?: string;
  readonly backup?: string;
  readonly plan?: string;
  readonly zone?: string;
  readonly storageGb?: number;
}

/** Services made out of backups. */
export function addServiceCopies(services: CliCommand): void {
  withWait(services.command("restore <service>"))
    .description("make a new service with its data as they were at a time, or as a backup has them")
    .requiredOption("--name <name>", "what the new one is called")
    .option("--to <time>", "RFC 3339, with Z or an offset")
    .option("--backup <backup-id>", "a completed backup, in place of a time")
    .option("--plan <plan>", "another plan than it has")
    .option("--zone <zone>", "another zone than it has")
    .option("--storage-gb <gb>", "a larger disk than it has", wholeNumber)
    .example("services restore orders --to 2026-11-22T10:00:00Z --name orders-before --wait")
    .example("services restore orders --backup 0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42 --name orders-copy")
    .does(async (context, name: string, flags: RestoreFlags) => {
      if ((flags.to === undefined) === (flags.backup === undefined))
        throw new InvalidArgumentError("say --to with a time, or --backup with the id of a backup");
      const { backups } = context.client;
      const id = await context.serviceId(name);
      const choice = given({ plan_name: flags.plan, zone: flags.zone, storage_size_gb: flags.storageGb });
      const asked = { target_service_name: flags.name, ...choice };
      const made =
        flags.backup === undefined
          ? await backups.restoreTo(id, flags.to ?? "", asked)
          : await backups.restore(id, flags.backup, asked);
      await showMade(context, made, flags);
    });

  withWait(services.command("fork <service> <name>"))
    .description("make a new service like it, out of its newest backup")
    .option("--backup <backup-id>", "out of this completed backup")
    .example("services fork orders orders-staging --wait")
    .does(async (context, name: string, target: string, flags: WaitFlags & { backup?: string }) => {
      const id = await context.serviceId(name);
      await showMade(context, await context.client.services.fork(id, target, { backupId: flags.backup }), flags);
    });

  withWait(services.command("undelete <service-id>"))
    .description("bring a deleted one back, with its hostname and passwords; services list --deleted has the ids")
    .option("--name <name>", "another name, when its own was taken meanwhile")
    .example("services undelete 0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10 --wait")
    .does(async (context, id: string, flags: WaitFlags & { name?: string }) =>
      showMade(context, await context.client.services.undelete(id, { name: flags.name }), flags),
    );
}

async function showMade(context: Context, made: ManagedService, flags: WaitFlags): Promise<void> {
  const shown = flags.wait === true ? await waitForService(context, made, "Running", flags.timeout) : made;
  context.output.show(shown ?? made, serviceFields);
  if (flags.wait !== true || made.operation === null) return;
  // An installation that is older than this program answers no warnings.
  const { warnings }: Partial<Operation> = await context.client.operations.get(made.operation.id);
  for (const warning of warnings ?? []) context.output.say(warning);
}
