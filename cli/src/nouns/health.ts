import type { CliCommand } from "../command.ts";
import { nodeLabels } from "../lookup.ts";

interface HealthFlags {
  readonly history?: boolean;
}

const checkColumns = ["node", "name", "status", "since", "reason"];

export function addHealth(health: CliCommand): void {
  health
    .argument("<service>")
    .option("--history", "show the history of changes, oldest first")
    .example("health orders")
    .example("health orders --history")
    .does(async ({ client, output, serviceId, signal }, name: string, { history }: HealthFlags) => {
      const id = await serviceId(name);
      if (history === true) {
        const changes = [];
        for await (const { timestamp, data } of client.health.history(id)) changes.push({ time: timestamp, ...data });
        return output.list(changes, ["time", "from", "to", "reason"]);
      }
      const now = await client.health.get(id);
      if (output.format !== "table") return output.show(now);
      output.info(`${name} is ${now.status}${now.reason === null ? "" : `: ${now.reason}`}`);
      const labels = await nodeLabels({ client, signal }, id);
      output.list(
        now.checks.map((check) => ({ ...check, node: labels.get(check.node_id) ?? check.node_id })),
        checkColumns,
      );
    });
}
