import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { integer } from "../flag-values.ts";

const service = "InferenceProcessService";

const processes: AdminList = {
  service,
  method: "ListInferenceProcesses",
  plural: "processes",
  columns: ["id", "state", "controllerId", "seenAt", "holds"],
};

/** Commands for processes of the inference proxy. */
export function addAdminInference(admin: CliCommand): void {
  const noun = admin.command("inference").description("processes of the inference proxy");
  noun
    .command("list")
    .description("list all processes, the controllers that they follow, and the number of their quota leases (holds)")
    .option("--limit <count>", "maximum number of entries", integer, 1_000)
    .example("admin inference list")
    .does((context, { limit }: { limit: number }) => showAdminList(context, processes, {}, limit));
  noun
    .command("lost <process>")
    .description("release the quota leases of a process that is lost for good; its unreported usage is lost")
    .option("--yes", "do not ask for confirmation")
    .example("admin inference lost 019a...")
    .does(async ({ passwordClient, output, confirm }, processId: string, { yes }: { yes?: boolean }) => {
      await confirm(`Is ${processId} lost for good, with its directory? Its unreported usage will be lost.`, yes);
      await (await passwordClient()).admin(service, "DeclareInferenceProcessLost", { processId });
      output.info(`${processId} has no quota leases any more`);
    });
}
