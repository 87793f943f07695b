import { NotFound } from "@holdfast/sdk/errors.ts";
import type { CliCommand } from "../command.ts";
import { appOf, monitoredOf } from "../lookup.ts";

interface HealthFlags {
  readonly history?: boolean;
}

const checkColumns = ["node", "name", "status", "since", "reason"];

type Caller = Parameters<typeof monitoredOf>[0];

/** A service or a hosted app, by name or id, with its machines. Throws NotFound. */
async function ownerOf(
  caller: Caller,
  name: string,
): Promise<{ readonly id: string; readonly nodes: readonly { readonly id: string; readonly hostname: string }[] }> {
  try {
    return await monitoredOf(caller, name);
  } catch (error) {
    if (!(error instanceof NotFound)) throw error;
    const app = await appOf(caller, name).catch(() => undefined);
    if (app === undefined || app.hosted === null) throw error;
    return { id: app.id, nodes: [] };
  }
}

export function addHealth(health: CliCommand): void {
  health
    .argument("<service>")
    .option("--history", "show the history of changes, oldest first")
    .example("health orders")
    .example("health orders --history")
    .example("health shop")
    .does(async ({ client, output, signal }, name: string, { history }: HealthFlags) => {
      const { id, nodes } = await ownerOf({ client, signal }, name);
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
