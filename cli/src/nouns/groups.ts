import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";

const columns = ["name", "state", "lag"];
const offsetColumns = ["topic", "partition", "offset", "end_offset", "lag"];

export function addGroups(groups: CliCommand): void {
  groups
    .command("list <service>")
    .description("consumer groups of a service with their lag")
    .example("groups list bus")
    .does(async ({ client, output, serviceId }, service: string) =>
      output.list(await take(client.consumerGroups.list(await serviceId(service))), columns),
    );

  groups
    .command("get <service> <group>")
    .description("offsets of a consumer group by partition")
    .example("groups get bus billing")
    .does(async ({ client, output, serviceId }, service: string, name: string) => {
      const group = await client.consumerGroups.get(await serviceId(service), name);
      if (output.format === "table") output.list(group.offsets, offsetColumns);
      else output.show(group, columns);
    });

  groups
    .command("reset <service> <group>")
    .description("set the offsets of a group without members in a topic")
    .requiredOption("--topic <topic>", "topic whose partitions are set")
    .requiredOption("--to <position>", "earliest, latest, or a time such as 2026-11-28T12:00:00Z")
    .option("--yes", "do not ask for confirmation")
    .example("groups reset bus billing --topic orders --to earliest")
    .does(async (context, service: string, name: string, flags: { topic: string; to: string; yes?: boolean }) => {
      const { topic, to, yes } = flags;
      const id = await context.serviceId(service);
      await context.confirm(`Set the offsets of ${name} in ${topic} to ${to}?`, yes);
      context.output.show(await context.client.consumerGroups.reset(id, name, { topic, to }), columns);
    });

  groups
    .command("delete <service> <group>")
    .description("delete a consumer group with its offsets")
    .option("--yes", "do not ask for confirmation")
    .example("groups delete bus billing")
    .does(async (context, service: string, name: string, { yes }: { yes?: boolean }) => {
      const id = await context.serviceId(service);
      await context.confirm(`Delete the group ${name} of ${service} with its offsets?`, yes);
      await context.client.consumerGroups.delete(id, name);
      context.output.info(`${name} is deleted`);
    });
}
