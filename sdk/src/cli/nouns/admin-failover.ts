import type { CliCommand } from "../command.ts";

interface Forced {
  readonly operationId?: string;
  readonly positions: readonly object[];
}

interface Flags {
  readonly acceptLoss?: boolean;
  readonly yes?: boolean;
}

/** A failover that loses what the replica lacks. */
export function addAdminFailover(admin: CliCommand): void {
  admin
    .command("failover <service> <node>")
    .description(
      "put a replica in the primary's place whatever it lacks; without --accept-loss it only shows what would go",
    )
    .option("--accept-loss", "do it, once the primary is certain to take no writes")
    .option("--yes", "do not ask")
    .example("admin failover 019a... 019b...")
    .example("admin failover 019a... 019b... --accept-loss")
    .does(async ({ person, output, confirm }, serviceId: string, nodeId: string, { acceptLoss, yes }: Flags) => {
      const client = await person();
      const force = (accepted: boolean) =>
        client.admin<Forced>("FailoverService", "ForceFailover", { serviceId, nodeId, acceptLoss: accepted });
      const { positions } = await force(false);
      output.list(positions, ["nodeId", "role", "answers", "timeline", "position", "lostBytes"]);
      if (acceptLoss !== true) return;
      await confirm("Lose what the chosen replica lacks?", yes);
      const { operationId } = await force(true);
      output.say(`operation ${operationId} puts ${nodeId} in the primary's place`);
    });
}
