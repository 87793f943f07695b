import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { wholeNumber } from "../flag-values.ts";

const service = "MaintenanceService";

const images: AdminList = {
  service,
  method: "ListImages",
  plural: "images",
  columns: ["id", "firstSeenAt", "newestOf", "services", "rolledBack", "missingOn", "urgent", "noticeHours", "reason"],
};

const behind: AdminList = {
  service,
  method: "ListMaintenance",
  plural: "services",
  columns: [
    "serviceId",
    "image",
    "updateIds",
    "urgent",
    "applyAt",
    "step",
    "blockedReason",
    "rolledBack",
    "snapshot",
    "leftSnapshotReason",
    "awaitedReason",
  ],
};

/** Images of the fleet, and how far its services are behind. */
export function addAdminMaintenance(admin: CliCommand): void {
  const maintenance = admin.command("maintenance").description("images of the fleet, and services that are behind");

  maintenance
    .command("images")
    .description(
      "node images and kernels of virtual machines, how many services run from each and how many went back from it",
    )
    .option("--limit <count>", "at most so many", wholeNumber, 1_000)
    .example("admin maintenance images")
    .does((context, { limit }: { limit: number }) => showAdminList(context, images, {}, limit));

  maintenance
    .command("services")
    .description(
      "services with pending updates or maintenance under way, that went back from an image, or wait for one",
    )
    .option("--limit <count>", "at most so many", wholeNumber, 1_000)
    .example("admin maintenance services")
    .does((context, { limit }: { limit: number }) => showAdminList(context, behind, {}, limit));

  maintenance
    .command("urgent <image>")
    .description("have services go over to this image or a newer one by the end of a notice, window or not")
    .requiredOption("--notice-hours <hours>", "from now; 0 is at once", wholeNumber)
    .requiredOption("--reason <reason>", "for users: why it cannot wait")
    .option("--yes", "do not ask")
    .example('admin maintenance urgent trixie-3f2a9c0d51e78b64 --notice-hours 48 --reason "CVE-2026-1234"')
    .does(async (context, image: string, flags: { noticeHours: number; reason: string; yes?: boolean }) => {
      const { noticeHours, reason, yes } = flags;
      await context.confirm(`Restart every service of ${image} within ${noticeHours} hours?`, yes);
      const client = await context.person();
      context.output.show(await client.admin<object>(service, "MarkImageUrgent", { image, noticeHours, reason }));
    });

  maintenance
    .command("not-urgent <image>")
    .description("let services take it in their windows again")
    .example("admin maintenance not-urgent trixie-3f2a9c0d51e78b64")
    .does(async ({ person, output }, image: string) =>
      output.show(await (await person()).admin<object>(service, "UnmarkImageUrgent", { image })),
    );
}
