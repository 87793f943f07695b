import type { CliCommand } from "../command.ts";
import { serviceFields } from "./service-fields.ts";
import { waitForService, type WaitFlags, withWait } from "./service-wait.ts";

const findingColumns = ["code", "blocking", "message"];

interface UpgradeFlags extends WaitFlags {
  readonly check?: boolean;
  readonly acceptTextOrderChange?: boolean;
  readonly yes?: boolean;
}

/** The command that upgrades the engine of a service. */
export function addServiceUpgrade(services: CliCommand): void {
  withWait(services.command("upgrade <service> <version>"))
    .description("upgrade the engine to a newer version of the catalog, with the same data")
    .option("--check", "only show the effects and obstacles of the upgrade")
    .option("--accept-text-order-change", "accept a changed sort order of text")
    .option("--yes", "do not ask for confirmation")
    .excludes("--check", "--wait")
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
      const started = { ...service, operation };
      const done = flags.wait === true ? await waitForService(context, started, "Running", flags.timeout) : started;
      output.show(done ?? started, serviceFields);
    });
}
