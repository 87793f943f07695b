import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { hours, integer } from "../flag-values.ts";

const service = "MaintenanceService";

const images: AdminList = {
  service,
  method: "ListImages",
  plural: "images",
  columns: ["id", "firstSeenAt", "newestOf", "services", "rolledBack", "missingOn", "urgent", "noticeHours", "reason"],
};

const pendingServices: AdminList = {
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

/** Commands for images of the fleet and maintenance of services. */
export function addAdminMaintenance(admin: CliCommand): void {
  const maintenance = admin
    .command("maintenance")
    .description("images of the fleet, and services with pending updates");

  maintenance
    .command("images")
    .description(
      "list node images and kernels of virtual machines, with the number of services that run each and that rolled back from it",
    )
    .option("--limit <count>", "maximum number of entries", integer, 1_000)
    .example("admin maintenance images")
    .does((context, { limit }: { limit: number }) => showAdminList(context, images, {}, limit));

  maintenance
    .command("services")
    .description("list services with pending updates, maintenance in progress, a rollback, or a wait for an image")
    .option("--limit <count>", "maximum number of entries", integer, 1_000)
    .example("admin maintenance services")
    .does((context, { limit }: { limit: number }) => showAdminList(context, pendingServices, {}, limit));

  maintenance
    .command("urgent <image>")
    .description(
      "require services to update to this image or a newer one by the end of a notice, outside of windows too",
    )
    .requiredOption("--notice-hours <hours>", "notice, such as 48 or 2d; 0 for immediately", hours)
    .requiredOption("--reason <reason>", "reason, which users see")
    .option("--yes", "do not ask for confirmation")
    .example('admin maintenance urgent trixie-3f2a9c0d51e78b64 --notice-hours 48 --reason "CVE-2026-1234"')
    .does(async (context, image: string, flags: { noticeHours: number; reason: string; yes?: boolean }) => {
      const { noticeHours, reason, yes } = flags;
      await context.confirm(
        `Restart every service with an older image than ${image} within ${noticeHours} hours?`,
        yes,
      );
      const client = await context.passwordClient();
      context.output.show(await client.admin<object>(service, "MarkImageUrgent", { image, noticeHours, reason }));
    });

  maintenance
    .command("not-urgent <image>")
    .description("let services update in their maintenance windows again")
    .example("admin maintenance not-urgent trixie-3f2a9c0d51e78b64")
    .does(async ({ passwordClient, output }, image: string) =>
      output.show(await (await passwordClient()).admin<object>(service, "UnmarkImageUrgent", { image })),
    );
}
