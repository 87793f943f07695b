import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { wholeNumber } from "../flag-values.ts";

const service = "InferenceProcessService";

const processes: AdminList = {
  service,
  method: "ListInferenceProcesses",
  plural: "processes",
  columns: ["id", "state", "controllerId", "seenAt", "holds"],
};

/** Processes of the inference proxy. */
export function addAdminInference(admin: CliCommand): void {
  const noun = admin.command("inference").description("processes of the inference proxy");
  noun
    .command("list")
    .description("all processes, and whether they follow a controller")
    .option("--limit <count>", "at most so many", wholeNumber, 1_000)
    .example("admin inference list")
    .does((context, { limit }: { limit: number }) => showAdminList(context, processes, {}, limit));
  noun
    .command("lost <process>")
    .description("give back what a process held that never comes back; what it did not report is in no usage")
    .option("--yes", "do not ask")
    .example("admin inference lost 019a...")
    .does(async ({ person, output, confirm }, processId: string, { yes }: { yes?: boolean }) => {
      await confirm(
        `Is ${processId} gone for good, with its directory? What it spent and did not report is lost.`,
        yes,
      );
      await (await person()).admin(service, "DeclareInferenceProcessLost", { processId });
      output.say(`${processId} holds nothing any more`);
    });
}
