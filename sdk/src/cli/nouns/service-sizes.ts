import type { ManagedService } from "../../answers.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { wholeNumber } from "../flag-values.ts";
import { serviceFields } from "./service-fields.ts";
import { waitForService, type WaitFlags, withWait } from "./service-wait.ts";

/** How large a service is. */
export function addServiceSizes(services: CliCommand): void {
  withWait(services.command("resize <service>"))
    .description("give it another plan, with one restart of its engine")
    .requiredOption("--plan <plan>", "plan of the catalog")
    .example("services resize orders --plan tier-4 --wait")
    .does(async (context, name: string, flags: WaitFlags & { plan: string }) => {
      const id = await context.serviceId(name);
      await showResult(context, await context.client.services.resize(id, flags.plan), flags);
    });

  withWait(services.command("expand <service>"))
    .description("give it more storage, without a restart; storage does not shrink")
    .requiredOption("--storage-gb <gb>", "size of its disk", wholeNumber)
    .example("services expand orders --storage-gb 50 --wait")
    .does(async (context, name: string, flags: WaitFlags & { storageGb: number }) => {
      const id = await context.serviceId(name);
      await showResult(context, await context.client.services.expandStorage(id, flags.storageGb), flags);
    });

  services
    .command("enable-writes <service>")
    .description("allow writes to a full disk for 15 minutes, to delete what is not needed")
    .example("services enable-writes orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.show(await client.services.enableWrites(await serviceId(name)), serviceFields),
    );
}

/** Either may be done to a service that is stopped, and it stays so. */
async function showResult(context: Context, accepted: ManagedService, { wait, timeout }: WaitFlags): Promise<void> {
  const target = accepted.status === "Stopped" ? "Stopped" : "Running";
  const shown = wait === true ? await waitForService(context, accepted, target, timeout) : accepted;
  context.output.show(shown ?? accepted, serviceFields);
}
