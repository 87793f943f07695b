import type { ManagedService } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { integer } from "../flag-values.ts";
import { serviceFields } from "./service-fields.ts";
import { waitForService, type WaitFlags, withWait } from "./service-wait.ts";

/** Commands that change plan and storage of a service. */
export function addServiceSizes(services: CliCommand): void {
  withWait(services.command("resize <service>"))
    .description("change the plan, with one restart of the engine")
    .requiredOption("--plan <plan>", "plan of the catalog")
    .example("services resize orders --plan tier-4 --wait")
    .does(async (context, name: string, flags: WaitFlags & { plan: string }) => {
      const id = await context.serviceId(name);
      await showResult(context, await context.client.services.resize(id, flags.plan), flags);
    });

  withWait(services.command("expand <service>"))
    .description("increase the storage, without a restart; storage cannot shrink")
    .requiredOption("--storage-gb <gb>", "size of the disk", integer)
    .example("services expand orders --storage-gb 50 --wait")
    .does(async (context, name: string, flags: WaitFlags & { storageGb: number }) => {
      const id = await context.serviceId(name);
      await showResult(context, await context.client.services.expandStorage(id, flags.storageGb), flags);
    });

  services
    .command("enable-writes <service>")
    .description("allow writes to a full disk for 15 minutes, so that data can be deleted")
    .example("services enable-writes orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.show(await client.services.enableWrites(await serviceId(name)), serviceFields),
    );
}

/** Shows the result of a resize or expansion. A stopped service remains stopped after both. */
async function showResult(context: Context, accepted: ManagedService, { wait, timeout }: WaitFlags): Promise<void> {
  const target = accepted.status === "Stopped" ? "Stopped" : "Running";
  const current = wait === true ? await waitForService(context, accepted, target, timeout) : accepted;
  context.output.show(current ?? accepted, serviceFields);
}
