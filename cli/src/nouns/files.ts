import type { ManagedService } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { collect, collectPairs, hours, integer, omitUndefined, take } from "../flag-values.ts";
import { filesOf } from "../lookup.ts";
import { addFilesKeys } from "./files-keys.ts";
import { deletedColumns, serviceFields } from "./service-fields.ts";
import { withLogs } from "./service-views.ts";
import { throwIfInterrupted, type WaitFlags, withWait } from "./service-wait.ts";

interface CreateFlags extends WaitFlags {
  readonly plan: string;
  readonly storageGb: number;
  readonly storageTier?: string;
  readonly zone?: string;
  readonly allow?: string[];
  readonly tag?: Record<string, string>;
  readonly ttlHours?: number;
  readonly deletionProtection?: boolean;
}

interface UpdateFlags {
  readonly name?: string;
  readonly allow?: string[] | false;
  readonly tag?: Record<string, string> | false;
  readonly ttlHours?: number | false;
  readonly deletionProtection?: boolean;
}

/** A files service has no engine that users choose. */
const engineFields = [
  "database_type",
  "version",
  "replication",
  "pooler",
  "layout_mode",
  "server_collation",
  "backups",
];
const withoutEngine = (fields: readonly string[]) => fields.filter((field) => !engineFields.includes(field));
/** Fields of a connection in tables, without the certificate, which has many lines. */
const connectionFields = ["endpoint", "bucket_endpoint", "bucket", "region", "host", "port", "private_endpoint"];
const columns = ["name", "status", "plan_name", "storage_size_gb", "hostname", "port", "created_at"];
const fields = withoutEngine(serviceFields);

export function addFiles(files: CliCommand): void {
  withWait(files.command("create <name>"))
    .description("create a files service with one empty bucket")
    .option("--plan <plan>", "plan of the catalog; tier-1 by default", "tier-1")
    .option("--storage-gb <gb>", "size of the disk; 1 by default", integer, 1)
    .option("--storage-tier <tier>", "storage tier of the catalog")
    .option("--zone <zone>", "zone of the service")
    .option("--allow <cidr>", "network that may connect, as CIDR (repeatable)", collect)
    .option("--tag <key=value>", "tag (repeatable)", collectPairs)
    .option("--ttl-hours <hours>", "delete the service after this time, such as 24 or 7d", hours)
    .option("--deletion-protection", "protect the service from deletion")
    .example("files create media --plan tier-1 --storage-gb 20 --wait")
    .does(async (context, name: string, flags: CreateFlags) => {
      const created = await context.client.files.create({
        name,
        plan_name: flags.plan,
        storage_size_gb: flags.storageGb,
        ...omitUndefined({
          storage_tier: flags.storageTier,
          zone: flags.zone,
          allowed_cidrs: flags.allow,
          tags: flags.tag,
          ttl_hours: flags.ttlHours,
          deletion_protection: flags.deletionProtection,
        }),
      });
      await showOnce(context, created, "Running", flags);
    });

  files
    .command("list")
    .description("list the files services of the organization")
    .option("--deleted", "only deleted ones that can be undeleted")
    .example("files list")
    .does(async ({ client, output }, { deleted }: { deleted?: boolean }) => {
      const found = await take(client.files.list(omitUndefined({ deleted })));
      output.list(found, deleted === true ? withoutEngine(deletedColumns) : columns);
    });

  files
    .command("get <files>")
    .description("show a files service")
    .example("files get media")
    .does(async (context, name: string) => context.output.show(await filesOf(context, name), fields));

  files
    .command("connection <files>")
    .description("show what an S3 client needs to connect, except a key")
    .option("--certificate", "print only the certificate of the server's authority, as PEM")
    .example("files connection media")
    .example("files connection media --certificate > ca.pem")
    .does(async (context, name: string, { certificate }: { certificate?: boolean }) => {
      const { id } = await filesOf(context, name);
      const connection = await context.client.files.connection(id);
      if (certificate === true) context.output.print(connection.ca_certificate.trimEnd());
      else context.output.show(connection, connectionFields);
    });

  const logs = files
    .command("logs <files>")
    .description("show the newest lines of the server's log, oldest first")
    .example("files logs media --level warning")
    .example("files logs media --since 30m --grep internal");
  withLogs(logs, filesOf);

  addUpdate(files);
  addVerb(files, "start", "Running", "start a stopped files service");
  addVerb(files, "stop", "Stopped", "stop a files service; its objects remain stored");
  addVerb(files, "restart", "Running", "restart the server of a files service");
  addSizes(files);
  addDeletion(files);
  addFilesKeys(files.command("keys").description("pairs of an access key id and a secret"));
}

function addUpdate(files: CliCommand): void {
  files
    .command("update <files>")
    .description("change name, networks, tags, expiry or protection")
    .option("--name <name>", "new name; host name and bucket remain")
    .option("--allow <cidr>", "network that may connect, as CIDR (repeatable); replaces all", collect)
    .option("--no-allow", "allow no network")
    .option("--tag <key=value>", "tag (repeatable); replaces all", collectPairs)
    .option("--no-tag", "remove all tags")
    .option("--ttl-hours <hours>", "delete the service after this time, such as 24 or 7d", hours)
    .option("--no-ttl-hours", "remove the expiry")
    .option("--deletion-protection", "protect the service from deletion")
    .option("--no-deletion-protection", "allow the service's deletion")
    .example("files update media --allow 10.1.0.0/16")
    .does(async (context, name: string, flags: UpdateFlags) => {
      const { id } = await filesOf(context, name);
      const change = omitUndefined({
        name: flags.name,
        allowed_cidrs: flags.allow === false ? [] : flags.allow,
        tags: flags.tag === false ? {} : flags.tag,
        ttl_hours: flags.ttlHours === false ? null : flags.ttlHours,
        deletion_protection: flags.deletionProtection,
      });
      context.output.show(await context.client.files.update(id, change), fields);
    });
}

function addVerb(
  files: CliCommand,
  verb: "start" | "stop" | "restart",
  target: "Running" | "Stopped",
  description: string,
): void {
  withWait(files.command(`${verb} <files>`))
    .description(description)
    .example(`files ${verb} media --wait`)
    .does(async (context, name: string, flags: WaitFlags) => {
      const { id } = await filesOf(context, name);
      await showOnce(context, await context.client.files[verb](id), target, flags);
    });
}

function addSizes(files: CliCommand): void {
  withWait(files.command("resize <files>"))
    .description("change the plan, with one restart of the server")
    .requiredOption("--plan <plan>", "plan of the catalog")
    .example("files resize media --plan tier-2 --wait")
    .does(async (context, name: string, flags: WaitFlags & { plan: string }) => {
      const { id } = await filesOf(context, name);
      const accepted = await context.client.files.resize(id, flags.plan);
      await showOnce(context, accepted, accepted.status === "Stopped" ? "Stopped" : "Running", flags);
    });

  withWait(files.command("expand <files>"))
    .description("increase the storage, without a restart; storage cannot shrink")
    .requiredOption("--storage-gb <gb>", "size of the disk", integer)
    .example("files expand media --storage-gb 50 --wait")
    .does(async (context, name: string, flags: WaitFlags & { storageGb: number }) => {
      const { id } = await filesOf(context, name);
      const accepted = await context.client.files.expandStorage(id, flags.storageGb);
      await showOnce(context, accepted, accepted.status === "Stopped" ? "Stopped" : "Running", flags);
    });
}

function addDeletion(files: CliCommand): void {
  withWait(files.command("delete <files>"))
    .description("delete a files service with its objects; it can be undeleted for 7 days")
    .option("--permanently", "delete without the possibility to undelete")
    .option("--yes", "do not ask for confirmation")
    .example("files delete media --wait")
    .does(async (context, name: string, flags: WaitFlags & { yes?: boolean; permanently?: boolean }) => {
      const service = await filesOf(context, name);
      const { permanently } = flags;
      await context.confirm(
        `Delete ${service.name} and all its objects${permanently ? ", permanently" : ""}?`,
        flags.yes,
      );
      const deleted = await context.client.files.delete(service.id, { permanently });
      if (flags.wait === true) await waitForFiles(context, service, "deleted", flags.timeout);
      else context.output.show(deleted, fields);
      if (permanently !== true)
        context.output.info(`To create it again within 7 days: ${context.program} files undelete ${service.id}`);
    });

  withWait(files.command("undelete <id>"))
    .description("create a deleted files service again, with its objects and keys")
    .option("--name <name>", "another name")
    .example("files list --deleted")
    .example("files undelete 019a... --wait")
    .does(async (context, id: string, flags: WaitFlags & { name?: string }) =>
      showOnce(context, await context.client.files.undelete(id, flags.name), "Running", flags),
    );
}

/** Shows the files service, with --wait once it has the status. */
async function showOnce(
  context: Context,
  accepted: ManagedService,
  target: "Running" | "Stopped",
  { wait, timeout }: WaitFlags,
): Promise<void> {
  const current = wait === true ? await waitForFiles(context, accepted, target, timeout) : accepted;
  context.output.show(current ?? accepted, fields);
}

async function waitForFiles(
  context: Context,
  service: ManagedService,
  target: "Running" | "Stopped" | "deleted",
  timeoutSeconds: number,
): Promise<ManagedService | undefined> {
  const options = { timeoutMs: timeoutSeconds * 1_000, signal: context.signal };
  const { files } = context.client;
  try {
    return await (target === "deleted"
      ? files.waitFor(service, target, options)
      : files.waitFor(service, target, options));
  } catch (error) {
    throwIfInterrupted(context, `files get ${service.name}`);
    throw error;
  }
}
