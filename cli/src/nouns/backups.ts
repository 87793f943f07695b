import type { BackupStatus, BackupType } from "@holdfast/sdk/responses.ts";
import { NotFound } from "@holdfast/sdk/errors.ts";
import { Option } from "commander";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { omitUndefined, take, days, integer } from "../flag-values.ts";
import { waitForOperation } from "./operation-wait.ts";
import { momentFields, withMoments } from "./restore-moments.ts";
import { type WaitFlags, withWait } from "./service-wait.ts";

const columns = ["id", "status", "created_at", "size_bytes", "type", "kind", "trigger", "restores_to", "expires_at"];
const fields = [
  ...columns,
  "progress_pct",
  "source_bytes",
  "duration_seconds",
  "version",
  "encryption_algorithm",
  "key_version",
  "verified_at",
  "error_message",
  "operation_id",
];
const drillColumns = ["id", "status", "trigger", "backup_id", "target", "finished_at", "error"];
const drillFields = [...drillColumns, "checks", "started_at", "operation_id"];
const types: readonly BackupType[] = ["automated", "manual"];
const statuses: readonly BackupStatus[] = ["pending", "running", "verifying", "completed", "failed"];

interface SettingsFlags {
  readonly hour?: number;
  readonly minute?: number;
  readonly retentionDays?: number;
}

export function addBackups(backups: CliCommand): void {
  backups
    .command("list <service>")
    .description("list backups of a service, newest first; of a deleted service by its id")
    .addOption(new Option("--type <type>", "only backups of this type").choices(types))
    .addOption(new Option("--status <status>", "only backups with this status").choices(statuses))
    .example("backups list orders")
    .example("backups list orders --type manual --status completed")
    .does(async ({ client, output, serviceId }, name: string, flags: { type?: BackupType; status?: BackupStatus }) => {
      const filter = omitUndefined({ type: flags.type, status: flags.status });
      output.list(await take(client.backups.list(await serviceId(name), filter)), columns);
    });

  backups
    .command("restorable <service>")
    .description("show the times that a service can be restored to, and the gaps between them")
    .example("backups restorable orders")
    .does(async ({ client, output, serviceId }, name: string) => {
      const id = await serviceId(name);
      const service = await client.services.get(id).catch(async (error: unknown) => {
        // A deleted service has backups, but its log has ended.
        if (!(error instanceof NotFound) || (await take(client.backups.list(id, {}), 1)).length === 0) throw error;
        return undefined;
      });
      if (service === undefined)
        return output.info(`${name} is deleted; \`backups list ${id}\` has the moments of its backups in restores_to`);
      const { backups: summary } = service;
      if (summary === null) return output.info(`${name} has no backups`);
      output.show(output.format === "table" ? withMoments(summary) : summary, momentFields);
    });

  withWait(backups.command("create <service>").description("take a manual backup"))
    .example("backups create orders --wait")
    .does(async (context, name: string, flags: WaitFlags) => {
      const id = await context.serviceId(name);
      const created = await context.client.backups.create(id);
      await showBackup(context, id, created.id, created.operation_id, flags);
    });

  backups
    .command("get <service> <backup-id>")
    .description("show a backup")
    .example("backups get orders 0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42")
    .does(async ({ client, output, serviceId }, name: string, backup: string) =>
      output.show(await client.backups.get(await serviceId(name), backup), fields),
    );

  backups
    .command("delete <service> <backup-id>")
    .description("delete a manual backup")
    .option("--yes", "do not ask for confirmation")
    .example("backups delete orders 0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42")
    .does(async (context, name: string, backup: string, flags: { yes?: boolean }) => {
      const id = await context.serviceId(name);
      await context.confirm(`Delete the backup ${backup} of ${name}?`, flags.yes);
      await context.client.backups.delete(id, backup);
      context.output.info(`${backup} is deleted`);
    });

  withWait(
    backups.command("verify <service> <backup-id>").description("verify a backup by reading and decrypting all of it"),
  )
    .example("backups verify orders 0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42 --wait")
    .does(async (context, name: string, backup: string, flags: WaitFlags) => {
      const id = await context.serviceId(name);
      const accepted = await context.client.backups.verify(id, backup);
      await showBackup(context, id, backup, accepted.operation_id, flags);
    });

  backups
    .command("cancel <service> <backup-id>")
    .description("cancel a backup in progress")
    .example("backups cancel orders 0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42")
    .does(async ({ client, output, serviceId }, name: string, backup: string) =>
      output.show(await client.backups.cancel(await serviceId(name), backup), fields),
    );

  withWait(
    backups
      .command("drill <service>")
      .description("test that a service can be restored: restore it into an isolated machine and check its data"),
  )
    .example("backups drill orders --wait")
    .does(async (context, name: string, flags: WaitFlags) => {
      const id = await context.serviceId(name);
      const drill = await context.client.backups.drill(id);
      if (flags.wait === true) await waitForOperation(context, drill.operation_id, `drill ${drill.id}`, flags.timeout);
      const drills = await take(context.client.backups.drills(id));
      context.output.show(drills.find((each) => each.id === drill.id) ?? drill, drillFields);
    });

  backups
    .command("drills <service>")
    .description("list restore drills of a service, newest first")
    .example("backups drills orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.backups.drills(await serviceId(name))), drillColumns),
    );

  backups
    .command("rotate-key <service>")
    .description("encrypt the next backups with a new key")
    .example("backups rotate-key orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.show(await client.backups.rotateKey(await serviceId(name))),
    );

  backups
    .command("settings <service>")
    .description("show or change the time of daily backups, in UTC, and the retention of automated ones")
    .option("--hour <hour>", "hour of daily backups, 0 to 23", integer)
    .option("--minute <minute>", "minute of daily backups, 0 to 59", integer)
    .option("--retention-days <days>", "retention of automated backups, 2 to 30, such as 14 or 14d", days)
    .example("backups settings orders")
    .example("backups settings orders --hour 3 --retention-days 14")
    .does(async ({ client, output, serviceId }, name: string, flags: SettingsFlags) => {
      const id = await serviceId(name);
      const change = omitUndefined({ hour: flags.hour, minute: flags.minute, retention_days: flags.retentionDays });
      const isRead = Object.keys(change).length === 0;
      output.show(isRead ? await client.backups.settings(id) : await client.backups.updateSettings(id, change));
    });
}

/** Shows the backup; with --wait, once its operation has ended. */
async function showBackup(
  context: Context,
  serviceId: string,
  backupId: string,
  operationId: string | null,
  flags: WaitFlags,
): Promise<void> {
  if (flags.wait === true && operationId !== null)
    await waitForOperation(context, operationId, `backup ${backupId}`, flags.timeout);
  context.output.show(await context.client.backups.get(serviceId, backupId), fields);
}
