import { showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { given, wholeNumber } from "../flag-values.ts";

const service = "AgentRolloutService";

/** The agents of machines, and how they are brought to a release. */
export function addAgents(admin: CliCommand): void {
  const agents = admin.command("agents").description("agents of machines, and their upgrade");
  agents
    .command("status")
    .description("the release, how far it is, and which versions run")
    .example("admin agents status")
    .does(async ({ person, output }) => output.show(await (await person()).admin<object>(service, "GetAgentRollout")));
  agents
    .command("list")
    .description("the agent of each machine, and why it is not upgraded where that failed")
    .option("--limit <count>", "at most so many", wholeNumber, 1_000)
    .option("--state <state>", "only current, behind, upgrading, failed, needs_start or unreachable ones")
    .example("admin agents list --state failed")
    .does((context, { limit, state }: { limit: number; state?: string }) => {
      const columns = ["machineId", "release", "state", "attempts", "reason"];
      return showAdminList(
        context,
        { service, method: "ListAgents", plural: "agents", columns },
        given({ state }),
        limit,
      );
    });
  agents
    .command("pause")
    .description("begin no further upgrade")
    .example("admin agents pause")
    .does(async ({ person, output }) =>
      output.show(await (await person()).admin<object>(service, "PauseAgentRollout")),
    );
  agents
    .command("resume")
    .description("go on after a pause or a halt; machines that failed are tried again")
    .example("admin agents resume")
    .does(async ({ person, output }) =>
      output.show(await (await person()).admin<object>(service, "ResumeAgentRollout")),
    );
  agents
    .command("retry <machine>")
    .description("try one machine again that failed")
    .example("admin agents retry 019a...")
    .does(async ({ person, output }, machineId: string) =>
      output.show(await (await person()).admin<object>(service, "RetryAgentUpgrade", { machineId })),
    );
  agents
    .command("offer")
    .description("bring all agents to the release of the controller that answers, also to an older one")
    .option("--yes", "do not ask")
    .example("admin agents offer")
    .does(async ({ person, output, confirm }, { yes }: { yes?: boolean }) => {
      await confirm("Bring all agents to this controller's release, whatever they run?", yes);
      output.show(await (await person()).admin<object>(service, "OfferAgentRelease"));
    });
}
