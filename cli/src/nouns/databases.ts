import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";
import { waitIfRequested } from "./operation-wait.ts";
import { type WaitFlags, withWait } from "./service-wait.ts";

const columns = ["name", "owner", "size_bytes", "state"];

interface CreateFlags extends WaitFlags {
  readonly owner?: string;
}

export function addDatabases(databases: CliCommand): void {
  databases
    .command("list <service>")
    .description("list the databases of a service with their sizes")
    .example("databases list orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.databases.list(await serviceId(name))), columns),
    );

  withWait(databases.command("create <service> <name>").description("create a database"))
    .option("--owner <user>", "user who may create and drop everything in it; the default user by default")
    .example("databases create orders archive")
    .example("databases create orders reports --owner ann")
    .does(async (context, name: string, database: string, { owner, ...flags }: CreateFlags) => {
      const created = await context.client.databases.create(await context.serviceId(name), database, { owner });
      const isDone = await waitIfRequested(context, created.operation, database, flags);
      context.output.show(isDone ? { ...created, operation: null } : created, columns);
    });

  withWait(
    databases
      .command("delete <service> <database>")
      .description("drop a database with its data")
      .option("--yes", "do not ask for confirmation"),
  )
    .example("databases delete orders archive")
    .does(async (context, name: string, database: string, flags: WaitFlags & { yes?: boolean }) => {
      const id = await context.serviceId(name);
      await context.confirm(`Drop ${database} of ${name} with its data?`, flags.yes);
      const { operation } = await context.client.databases.delete(id, database);
      if (await waitIfRequested(context, operation, database, flags)) context.output.info(`${database} is dropped`);
    });
}
