import type { TopicChange } from "@holdfast/sdk/requests.ts";
import type { CliCommand } from "../command.ts";
import { UsageError } from "../exit-code.ts";
import { integer, collectPairs, collect, take } from "../flag-values.ts";

const columns = ["name", "partitions", "replication_factor", "size_bytes"];
const partitionColumns = ["partition", "leader", "start_offset", "end_offset"];

interface SettingFlags {
  readonly partitions?: number;
  readonly set?: Readonly<Record<string, string>>;
  readonly reset?: readonly string[];
}

export function addTopics(topics: CliCommand): void {
  topics
    .command("list <service>")
    .description("topics of a service")
    .example("topics list bus")
    .does(async ({ client, output, serviceId }, service: string) =>
      output.list(await take(client.topics.list(await serviceId(service))), columns),
    );

  topics
    .command("get <service> <topic>")
    .description("partitions of a topic; --output json has its settings too")
    .example("topics get bus orders")
    .does(async ({ client, output, serviceId }, service: string, name: string) => {
      const topic = await client.topics.get(await serviceId(service), name);
      if (output.format === "table") output.list(topic.partition_states, partitionColumns);
      else output.show(topic, columns);
    });

  topics
    .command("create <service> <name>")
    .description("create a topic")
    .option("--partitions <count>", "partitions; the parameter num.partitions by default", integer)
    .option("--replication <count>", "replicas of each partition", integer)
    .option("--set <name=value>", "setting of the topic; repeatable", collectPairs)
    .example("topics create bus orders --partitions 6")
    .example("topics create bus state --set cleanup.policy=compact")
    .does(
      async (
        { client, output, serviceId },
        service: string,
        name: string,
        { partitions, replication, set = {} }: SettingFlags & { replication?: number },
      ) => {
        const topic = {
          name,
          ...(partitions !== undefined && { partitions }),
          ...(replication !== undefined && { replication_factor: replication }),
          config: set,
        };
        output.show(await client.topics.create(await serviceId(service), topic), columns);
      },
    );

  topics
    .command("update <service> <topic>")
    .description("add partitions to a topic, or change its settings")
    .option("--partitions <count>", "all partitions afterwards; their number can only grow", integer)
    .option("--set <name=value>", "setting of the topic; repeatable", collectPairs)
    .option("--reset <name>", "setting that the topic has no more; repeatable", collect)
    .example("topics update bus orders --partitions 12")
    .example("topics update bus orders --set retention.ms=86400000")
    .does(async ({ client, output, serviceId }, service: string, name: string, flags: SettingFlags) => {
      const { partitions, set = {}, reset = [] } = flags;
      if (partitions === undefined && Object.keys(set).length === 0 && reset.length === 0)
        throw new UsageError("nothing to change: give --partitions, --set or --reset");
      const change: TopicChange = {
        ...(partitions !== undefined && { partitions }),
        config: { ...set, ...Object.fromEntries(reset.map((each) => [each, null])) },
      };
      output.show(await client.topics.update(await serviceId(service), name, change), columns);
    });

  topics
    .command("delete <service> <topic>")
    .description("delete a topic with its records")
    .option("--yes", "do not ask for confirmation")
    .example("topics delete bus orders")
    .does(async (context, service: string, name: string, { yes }: { yes?: boolean }) => {
      const id = await context.serviceId(service);
      await context.confirm(`Delete ${name} of ${service} with its records?`, yes);
      await context.client.topics.delete(id, name);
      context.output.info(`${name} is deleted`);
    });
}
