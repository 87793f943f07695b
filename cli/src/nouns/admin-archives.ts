import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { omitUndefined, integer, timeOrDelay } from "../flag-values.ts";

const service = "BackupService";

const archives: AdminList = {
  service,
  method: "ListArchives",
  plural: "archives",
  columns: [
    "serviceId",
    "serviceName",
    "engine",
    "term",
    "logRanges",
    "backups",
    "gaps",
    "restorableFrom",
    "restorableTo",
    "keptUntil",
  ],
};

const ranges: AdminList = {
  service,
  method: "ListLogRanges",
  plural: "ranges",
  columns: ["archiveId", "term", "firstSequence", "lastSequence", "from", "to", "continues"],
};

const uploads: AdminList = {
  service,
  method: "ListUploads",
  plural: "uploads",
  columns: ["backupId", "serviceId", "status", "attempt", "machineId", "objects", "sizeBytes", "progressedAt"],
};

const expiries: AdminList = {
  service,
  method: "ListExpiry",
  plural: "expiries",
  columns: ["serviceId", "kind", "id", "term", "objects", "sizeBytes", "waitsFor"],
};

interface Flags {
  readonly limit: number;
  readonly at?: string;
}

/** Commands for the backups of all services. */
export function addAdminArchives(admin: CliCommand): void {
  const command = admin.command("archives").description("backups of all services: log archives, uploads and expiry");

  command
    .command("list")
    .description("list the archives of all services, also of deleted ones")
    .option("--limit <count>", "maximum number of entries", integer, 1_000)
    .example("admin archives list")
    .does((context, { limit }: Flags) => showAdminList(context, archives, {}, limit));

  command
    .command("show <service-id>")
    .description("list log ranges of a service in the object store, with their terms")
    .option("--limit <count>", "maximum number of entries", integer, 1_000)
    .example("admin archives show 019a...")
    .does((context, serviceId: string, { limit }: Flags) => showAdminList(context, ranges, { serviceId }, limit));

  command
    .command("uploads")
    .description("list backups in progress, and ended backups whose objects are to be deleted")
    .option("--limit <count>", "maximum number of entries", integer, 1_000)
    .example("admin archives uploads")
    .does((context, { limit }: Flags) => showAdminList(context, uploads, {}, limit));

  command
    .command("expiry")
    .description("list expired objects, which will be deleted; deletes nothing itself")
    .option(
      "--at <time>",
      "list objects that are expired at this time: RFC 3339, or a time from now such as 7d",
      timeOrDelay,
    )
    .option("--limit <count>", "maximum number of entries", integer, 1_000)
    .example("admin archives expiry --at 2026-12-01T00:00:00Z")
    .does((context, { limit, at }: Flags) => showAdminList(context, expiries, omitUndefined({ at }), limit));
}
