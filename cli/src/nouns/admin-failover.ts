import type { CliCommand } from "../command.ts";

interface Forced {
  readonly operationId?: string;
  readonly positions: readonly object[];
}

interface Flags {
  readonly acceptLoss?: boolean;
  readonly yes?: boolean;
}

/** The forced failover, which may lose data. */
export function addAdminFailover(admin: CliCommand): void {
  admin
    .command("failover <service> <node>")
    .description("show the data that a replica lacks; with --accept-loss, make it the primary")
    .option("--accept-loss", "make the replica the primary, once the former primary is certain to accept no writes")
    .option("--yes", "do not ask for confirmation")
    .example("admin failover 019a... 019b...")
    .example("admin failover 019a... 019b... --accept-loss")
    .does(
      async ({ passwordClient, output, confirm }, serviceId: string, nodeId: string, { acceptLoss, yes }: Flags) => {
        const client = await passwordClient();
        const force = (accepted: boolean) =>
          client.admin<Forced>("FailoverService", "ForceFailover", { serviceId, nodeId, acceptLoss: accepted });
        const { positions } = await force(false);
        output.list(positions, ["nodeId", "role", "answers", "timeline", "position", "lostBytes", "order"]);
        if (acceptLoss !== true) return;
        await confirm("Lose the data that the chosen replica lacks?", yes);
        const { operationId } = await force(true);
        output.info(`operation ${operationId} makes ${nodeId} the primary`);
      },
    );
}
