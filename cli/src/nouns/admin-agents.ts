import { showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { omitUndefined, integer } from "../flag-values.ts";

const service = "AgentRolloutService";

/** Commands for agents of machines and the rollout of agent releases. */
export function addAgents(admin: CliCommand): void {
  const agents = admin.command("agents").description("agents of machines and their upgrades");
  agents
    .command("status")
    .description("show the release of the rollout, its progress, and the running versions")
    .example("admin agents status")
    .does(async ({ passwordClient, output }) =>
      output.show(await (await passwordClient()).admin<object>(service, "GetAgentRollout")),
    );
  agents
    .command("list")
    .description("list the agents of all machines, with the reasons of failed upgrades")
    .option("--limit <count>", "maximum number of entries", integer, 1_000)
    .option(
      "--state <state>",
      "only agents in this state: current, behind, upgrading, failed, needs_start or unreachable",
    )
    .example("admin agents list --state failed")
    .does((context, { limit, state }: { limit: number; state?: string }) => {
      const columns = ["machineId", "release", "state", "attempts", "reason"];
      return showAdminList(
        context,
        { service, method: "ListAgents", plural: "agents", columns },
        omitUndefined({ state }),
        limit,
      );
    });
  agents
    .command("pause")
    .description("pause the rollout: start no further upgrades")
    .example("admin agents pause")
    .does(async ({ passwordClient, output }) =>
      output.show(await (await passwordClient()).admin<object>(service, "PauseAgentRollout")),
    );
  agents
    .command("resume")
    .description("resume the rollout after a pause or a halt, and retry failed machines")
    .example("admin agents resume")
    .does(async ({ passwordClient, output }) =>
      output.show(await (await passwordClient()).admin<object>(service, "ResumeAgentRollout")),
    );
  agents
    .command("retry <machine>")
    .description("retry a failed machine")
    .example("admin agents retry 019a...")
    .does(async ({ passwordClient, output }, machineId: string) =>
      output.show(await (await passwordClient()).admin<object>(service, "RetryAgentUpgrade", { machineId })),
    );
  agents
    .command("offer")
    .description("roll out the release of the responding controller to all agents, also as a downgrade")
    .option("--yes", "do not ask for confirmation")
    .example("admin agents offer")
    .does(async ({ passwordClient, output, confirm }, { yes }: { yes?: boolean }) => {
      await confirm("Roll out this controller's release to all agents?", yes);
      output.show(await (await passwordClient()).admin<object>(service, "OfferAgentRelease"));
    });
}
