import { Option } from "commander";
import type { QueryOrder } from "@holdfast/sdk/requests.ts";
import type { CliCommand } from "../command.ts";
import { omitUndefined } from "../flag-values.ts";

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
    .description("list the most expensive queries of a service")
    .addOption(new Option("--order <order>", "sort order").choices(orders).default("total_time"))
    .option("--limit <number>", "maximum number of queries, 50 by default, at most 500")
    .example("queries top orders")
    .example("queries top orders --order calls --limit 10")
    .does(async ({ client, output, serviceId }, name: string, { order, limit }: TopFlags) => {
      const filter = { order, ...omitUndefined({ limit: limit === undefined ? undefined : Number(limit) }) };
      const result = await client.queries.top(await serviceId(name), filter);
      if (output.format !== "table") return output.show(result);
      output.list(result.queries, topColumns);
      output.info(`${result.total_count} queries counted since ${result.since}`);
    });

  queries
    .command("running <service>")
    .description("list sessions that run a query or have an open transaction")
    .example("queries running orders")
    .does(async ({ client, output, serviceId }, name: string) => {
      const result = await client.queries.running(await serviceId(name));
      if (output.format !== "table") return output.show(result);
      output.list(result.queries, runningColumns);
      if (result.truncated) output.info("There are more sessions.");
    });

  queries
    .command("cancel <service> <query-run>")
    .description("cancel the query of a session; the session remains open")
    .example("queries cancel orders 4711-1795379723407123")
    .does(async ({ client, output, serviceId }, name: string, id: string) => {
      const { pid } = await client.queries.cancel(await serviceId(name), id);
      output.info(`the query of session ${pid} is being canceled`);
    });

  queries
    .command("terminate <service> <query-run>")
    .description("terminate a session with its transaction")
    .option("--yes", "do not ask for confirmation")
    .example("queries terminate orders 4711-1795379723407123")
    .does(async (context, name: string, id: string, flags: { yes?: boolean }) => {
      const service = await context.serviceId(name);
      await context.confirm(`Terminate session ${id} of ${name} with its transaction?`, flags.yes);
      const { pid } = await context.client.queries.terminate(service, id);
      context.output.info(`session ${pid} is being terminated`);
    });
}
