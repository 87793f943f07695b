import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { integer, seconds, take } from "../flag-values.ts";
import { nodeIdOf } from "../lookup.ts";
import { waitForOperation } from "./operation-wait.ts";
import { nodeColumns } from "./service-fields.ts";
import { type WaitFlags, withWait } from "./service-wait.ts";

const statusColumns = ["node_id", "role", "connected", "sync_state", "lag_seconds", "lag_bytes", "position", "since"];

interface AddFlags extends WaitFlags {
  readonly zone?: string;
  readonly count?: number;
}

export function addNodes(nodes: CliCommand): void {
  nodes
    .command("list <service>")
    .description("list nodes of a service, in the order of their creation")
    .example("nodes list orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.services.nodes(await serviceId(name))), nodeColumns),
    );

  withWait(nodes.command("add <service>").description("add a replica, which copies the primary's data and follows it"))
    .option("--count <count>", "number of nodes to add; 1 by default", integer)
    .option("--zone <zone>", "zone of the nodes; the service's zone by default")
    .example("nodes add orders --wait")
    .example("nodes add events --count 2 --wait")
    .does(async (context, name: string, flags: AddFlags) => {
      const id = await context.serviceId(name);
      const { zone, count } = flags;
      const node = await context.client.nodes.add(id, { role: "replica", zone, count });
      const added = count === undefined ? "a node" : `${count} nodes`;
      await waitIfRequested(context, node.operation_id, `adding ${added} to ${name}`, flags);
      if (count === undefined) return context.output.show(await context.client.nodes.get(id, node.id), nodeColumns);
      context.output.list(await take(context.client.services.nodes(id)), nodeColumns);
    });

  withWait(nodes.command("remove <service> <node>").description("remove a replica with its data, by its id or name"))
    .option("--yes", "do not ask for confirmation")
    .example("nodes remove orders orders-k3v9q2zt-2.local.holdfast.test --wait")
    .does(async (context, name: string, node: string, flags: WaitFlags & { yes?: boolean }) => {
      const id = await context.serviceId(name);
      const nodeId = await nodeIdOf(context, id, node);
      await context.confirm(`Remove the node ${node} of ${name} with its data?`, flags.yes);
      const { operation_id: operation } = await context.client.nodes.remove(id, nodeId);
      await waitIfRequested(context, operation, `removing a node of ${name}`, flags);
      context.output.info(flags.wait === true ? `${node} is removed` : `${node} is being removed`);
    });

  nodes
    .command("status <service> [node]")
    .description("show the replication status and lag of all nodes or of one")
    .example("nodes status orders")
    .example("nodes status orders orders-k3v9q2zt-2.local.holdfast.test")
    .does(async (context, name: string, node: string | undefined) => {
      const { client, output } = context;
      const id = await context.serviceId(name);
      if (node !== undefined) return output.show(await client.nodes.status(id, await nodeIdOf(context, id, node)));
      const nodes = await take(client.services.nodes(id));
      output.list(await Promise.all(nodes.map((each) => client.nodes.status(id, each.id))), statusColumns);
    });
}

export function addFailover(services: CliCommand): void {
  services
    .command("failover <service> <node>")
    .description("switch over: make a replica the primary without data loss")
    .option("--watch", "show progress until it is completed")
    .option("--wait", "the same as --watch")
    .option("--timeout <duration>", "give up waiting after this time, such as 90s or 30m", seconds, 900)
    .needs("--timeout", "--watch", "--wait")
    .excludes("--wait", "--watch")
    .example("services failover orders orders-k3v9q2zt-2.local.holdfast.test --watch")
    .does(async (context, name: string, node: string, flags: WaitFlags & { watch?: boolean }) => {
      const id = await context.serviceId(name);
      const operation = await context.client.nodes.failover(id, await nodeIdOf(context, id, node));
      if (flags.watch === true || flags.wait === true)
        await waitForOperation(context, operation, `failover of ${name}`, flags.timeout);
      context.output.list(await take(context.client.services.nodes(id)), nodeColumns);
    });
}

async function waitIfRequested(
  context: Context,
  operation: string | null,
  title: string,
  flags: WaitFlags,
): Promise<void> {
  if (operation !== null && flags.wait === true) await waitForOperation(context, operation, title, flags.timeout);
}
