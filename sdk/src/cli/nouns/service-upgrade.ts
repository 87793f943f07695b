import type { CliCommand } from "../command.ts";
import { serviceFields } from "./service-fields.ts";
import { waitForService, type WaitFlags, withWait } from "./service-wait.ts";

const findingColumns = ["code", "blocking", "message"];

interface UpgradeFlags extends WaitFlags {
  readonly check?: boolean;
  readonly acceptTextOrderChange?: boolean;
  readonly yes?: boolean;
}

/** Another version of its engine. */
export function addServiceUpgrade(services: CliCommand): void {
  withWait(services.command("upgrade <service> <version>"))
    .description("upgrade its engine to a newer version of the catalog, over the same data")
    .option("--check", "only tell what an upgrade comes with, and what stands against it")
    .option("--accept-text-order-change", "also when it changes the order of text")
    .option("--yes", "do not ask")
    .example("services upgrade cache 9 --check")
    .example("services upgrade cache 9 --wait")
    .does(async (context, name: string, version: string, flags: UpgradeFlags) => {
      const { client, output } = context;
      const service = await context.service(name);
      const accepts = flags.acceptTextOrderChange;
      if (flags.check === true) {
        const found = await client.services.upgrade(service.id, version, true, accepts);
        return output.format === "table" ? output.list(found.findings, findingColumns) : output.show(found);
      }
      await context.confirm(`Upgrade ${service.name} to version ${version} now? Its engine restarts.`, flags.yes);
      const { operation } = await client.services.upgrade(service.id, version, false, accepts);
      const begun = { ...service, operation };
      const done = flags.wait === true ? await waitForService(context, begun, "Running", flags.timeout) : begun;
      output.show(done ?? begun, serviceFields);
    });
}
