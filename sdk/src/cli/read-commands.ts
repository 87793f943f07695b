import type { Command } from "commander";
import type { LogLine, Operation } from "../types.ts";
import { type CliDeps, openContext } from "./context.ts";
import { given, wholeNumber } from "./flag-values.ts";
import { printable } from "./output.ts";

const operationColumns = ["id", "type", "status", "step", "progress_pct", "created_at", "finished_at"];

/** What can only be read: catalogue, operations, logs. */
export function addReadCommands(program: Command, deps: CliDeps): void {
  program
    .command("catalog")
    .description("engines, plans, storage and prices")
    .action(async (_flags: object, command: Command) => {
      const context = openContext(command, deps);
      const catalog = await context.client.catalog();
      if (command.optsWithGlobals<{ output: string }>().output === "json") return context.output.show(catalog);
      const engines = catalog.engines.map((engine) => ({
        ...engine,
        versions: engine.versions.map(({ version, available }) => (available ? version : `${version} (not here)`)),
      }));
      context.output.list(engines, ["database_type", "title", "versions", "default_version", "port"]);
      context.output.say("");
      context.output.list(catalog.plans, ["plan_name", "vcpu", "memory_gb", "monthly_cost"]);
      context.output.say("");
      context.output.list(catalog.storage_tiers, ["storage_tier", "medium", "use", "monthly_cost_per_gb"]);
      context.output.say(
        `\nPrices in ${catalog.currency} a month. Zones: ${catalog.zones.map((zone) => zone.zone).join(", ")}.`,
      );
    });

  const operations = program.command("operations").description("what takes time");
  operations
    .command("list <service>")
    .description("operations of a service, newest first")
    .action(async (name: string, _flags: object, command: Command) => {
      const context = openContext(command, deps);
      const found: Operation[] = [];
      for await (const operation of context.client.operations.list((await context.service(name)).id))
        found.push(operation);
      context.output.list(found, operationColumns);
    });
  operations
    .command("get <id>")
    .description("one operation")
    .action(async (id: string, _flags: object, command: Command) => {
      const context = openContext(command, deps);
      context.output.show(await context.client.operations.get(id), [...operationColumns, "error"]);
    });

  program
    .command("logs <service>")
    .description("lines of the engine's log")
    .option("--since <time>", "RFC 3339")
    .option("--level <level>", "debug, info, warning or error, and above")
    .option("--limit <lines>", "at most 200", wholeNumber)
    .option("--follow", "go on as they come")
    .action(
      async (
        name: string,
        flags: { since?: string; level?: string; limit?: number; follow?: boolean },
        command: Command,
      ) => {
        const context = openContext(command, deps);
        const { services } = context.client;
        const { id } = await context.service(name);
        const asJson = command.optsWithGlobals<{ output: string }>().output === "json";
        const print = (line: LogLine) => context.output.print(asJson ? JSON.stringify(line) : textOf(line));
        const query = given({ since: flags.since, level: flags.level });
        if (flags.follow === true) {
          for await (const line of services.followLogs(id, query, { signal: deps.signal })) print(line);
        } else {
          for (const line of (await services.logs(id, { ...query, limit: flags.limit }, { signal: deps.signal })).lines)
            print(line);
        }
      },
    );
}

/** One line on the terminal, whatever the engine wrote. */
function textOf({ time, level, component, message }: LogLine): string {
  return printable(`${time} ${level.padEnd(7)} ${component} ${message}`);
}
