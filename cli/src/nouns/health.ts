import type { CliCommand } from "../command.ts";
import { monitoredOf } from "../lookup.ts";

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
    .does(async ({ client, output, signal }, name: string, { history }: HealthFlags) => {
      const { id, nodes } = await monitoredOf({ client, signal }, name);
      if (history === true) {
        const changes = [];
        for await (const { timestamp, data } of client.health.history(id)) changes.push({ time: timestamp, ...data });
        return output.list(changes, ["time", "from", "to", "reason"]);
      }
      const now = await client.health.get(id);
      if (output.format !== "table") return output.show(now);
      output.info(`${name} is ${now.status}${now.reason === null ? "" : `: ${now.reason}`}`);
      const labels = new Map(nodes.map((node) => [node.id, node.hostname.split(".")[0] ?? node.id]));
      output.list(
        now.checks.map((check) => ({ ...check, node: labels.get(check.node_id) ?? check.node_id })),
        checkColumns,
      );
    });
}
