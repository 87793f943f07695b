import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { given, wholeNumber } from "../flag-values.ts";

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

/** Backups of all services as the platform has them. */
export function addAdminArchives(admin: CliCommand): void {
  const command = admin
    .command("archives")
    .description("backups of all services: ranges of their logs, uploads, expiry");

  command
    .command("list")
    .description("what is kept of each service's backups, also of services that are gone")
    .option("--limit <count>", "at most so many", wholeNumber, 1_000)
    .example("admin archives list")
    .does((context, { limit }: Flags) => showAdminList(context, archives, {}, limit));

  command
    .command("show <service-id>")
    .description("ranges of a service's log in the store, with their terms")
    .option("--limit <count>", "at most so many", wholeNumber, 1_000)
    .example("admin archives show 019a...")
    .does((context, serviceId: string, { limit }: Flags) => showAdminList(context, ranges, { serviceId }, limit));

  command
    .command("uploads")
    .description("backups that have begun and not ended, and objects of ended ones that are to be deleted")
    .option("--limit <count>", "at most so many", wholeNumber, 1_000)
    .example("admin archives uploads")
    .does((context, { limit }: Flags) => showAdminList(context, uploads, {}, limit));

  command
    .command("expiry")
    .description("what would be deleted as its time is over; deletes nothing")
    .option("--at <time>", "by then, RFC 3339; now by default")
    .option("--limit <count>", "at most so many", wholeNumber, 1_000)
    .example("admin archives expiry --at 2026-12-01T00:00:00Z")
    .does((context, { limit, at }: Flags) => showAdminList(context, expiries, given({ at }), limit));
}
