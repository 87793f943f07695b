import { Option } from "commander";
import type { QueryOrder } from "../../inputs.ts";
import type { CliCommand } from "../command.ts";
import { given } from "../flag-values.ts";

interface TopFlags {
  readonly order: QueryOrder;
  readonly limit?: string;
}

const orders: readonly QueryOrder[] = ["total_time", "calls", "mean_time", "rows"];
const topColumns = ["total_time", "calls", "mean_time", "rows", "cache_hit_ratio", "database", "query"];
const runningColumns = ["query_run_id", "username", "database", "state", "wait", "age_seconds", "query"];

export function addQueries(queries: CliCommand): void {
  queries
    .command("top <service>")
    .description("queries that its database spends most with")
    .addOption(new Option("--order <order>", "what the first has most of").choices(orders).default("total_time"))
    .option("--limit <number>", "how many: 50 when not given, 500 at most")
    .example("queries top orders")
    .example("queries top orders --order calls --limit 10")
    .does(async ({ client, output, serviceId }, name: string, { order, limit }: TopFlags) => {
      const asked = { order, ...given({ limit: limit === undefined ? undefined : Number(limit) }) };
      const told = await client.queries.top(await serviceId(name), asked);
      if (output.format !== "table") return output.show(told);
      output.list(told.queries, topColumns);
      output.say(`${told.total_count} queries counted since ${told.since}`);
    });

  queries
    .command("running <service>")
    .description("sessions that run a query or hold a transaction open")
    .example("queries running orders")
    .does(async ({ client, output, serviceId }, name: string) => {
      const told = await client.queries.running(await serviceId(name));
      if (output.format !== "table") return output.show(told);
      output.list(told.queries, runningColumns);
      if (told.truncated) output.say("There are more.");
    });

  queries
    .command("cancel <service> <query-run>")
    .description("end the query that a session runs; the session goes on")
    .example("queries cancel orders 4711-1795379723407123")
    .does(async ({ client, output, serviceId }, name: string, id: string) => {
      const { pid } = await client.queries.cancel(await serviceId(name), id);
      output.say(`session ${pid} was asked to end its query`);
    });

  queries
    .command("terminate <service> <query-run>")
    .description("end a session with its transaction")
    .option("--yes", "do not ask")
    .example("queries terminate orders 4711-1795379723407123")
    .does(async (context, name: string, id: string, flags: { yes?: boolean }) => {
      const service = await context.serviceId(name);
      await context.confirm(`End session ${id} of ${name} with its transaction?`, flags.yes);
      const { pid } = await context.client.queries.terminate(service, id);
      context.output.say(`session ${pid} was asked to end`);
    });
}
