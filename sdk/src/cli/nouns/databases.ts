import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";

const columns = ["name", "owner", "size_bytes"];

export function addDatabases(databases: CliCommand): void {
  databases
    .command("list <service>")
    .description("its databases with their sizes")
    .example("databases list orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.databases.list(await serviceId(name))), columns),
    );

  databases
    .command("create <service> <name>")
    .description("make a database")
    .example("databases create orders archive")
    .does(async ({ client, output, serviceId }, name: string, database: string) =>
      output.show(await client.databases.create(await serviceId(name), database), columns),
    );

  databases
    .command("delete <service> <database>")
    .description("drop a database with its data")
    .option("--yes", "do not ask")
    .example("databases delete orders archive")
    .does(
      async ({ client, output, serviceId, confirm }, name: string, database: string, { yes }: { yes?: boolean }) => {
        const id = await serviceId(name);
        await confirm(`Drop ${database} of ${name} with its data?`, yes);
        await client.databases.delete(id, database);
        output.say(`${database} is dropped`);
      },
    );
}
