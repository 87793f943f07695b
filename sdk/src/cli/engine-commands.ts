import type { Command } from "commander";
import type { Database, DatabaseUser, UserRole } from "../types.ts";
import { type CliDeps, openContext } from "./context.ts";
import { UsageError } from "./exit-code.ts";

/** What is inside of a service: users, databases, parameters. */
export function addEngineCommands(program: Command, deps: CliDeps): void {
  addUsers(program.command("users").description("users of a database service"), deps);
  addDatabases(program.command("databases").description("databases of a service"), deps);
  addConfig(program.command("config").description("parameters of the engine"), deps);
}

function addUsers(users: Command, deps: CliDeps): void {
  const columns = ["username", "role", "managed", "created_at"];
  users
    .command("list <service>")
    .description("all users, those made in SQL too")
    .action(async (name: string, _flags: object, command: Command) => {
      const context = openContext(command, deps);
      const found: DatabaseUser[] = [];
      for await (const user of context.client.databaseUsers.list((await context.service(name)).id)) found.push(user);
      context.output.list(found, columns);
    });
  users
    .command("create <service> <username>")
    .description("make a user; its password comes from users password")
    .option("--role <role>", "admin, readwrite or readonly", "readwrite")
    .action(async (name: string, username: string, { role }: { role: UserRole }, command: Command) => {
      const context = openContext(command, deps);
      context.output.show(
        await context.client.databaseUsers.create((await context.service(name)).id, { username, role }),
        columns,
      );
    });
  users
    .command("delete <service> <username>")
    .description("remove a user")
    .action(async (name: string, username: string, _flags: object, command: Command) => {
      const context = openContext(command, deps);
      await context.client.databaseUsers.delete((await context.service(name)).id, username);
      context.output.say(`${username} is removed`);
    });
  users
    .command("password <service> <username>")
    .description("print the user's password")
    .option("--reset", "give it a new one first")
    .action(async (name: string, username: string, { reset }: { reset?: boolean }, command: Command) => {
      const context = openContext(command, deps);
      const { id } = await context.service(name);
      const answer = await (reset === true
        ? context.client.databaseUsers.resetPassword(id, username)
        : context.client.databaseUsers.revealPassword(id, username));
      context.output.print(answer.password);
    });
}

function addDatabases(databases: Command, deps: CliDeps): void {
  const columns = ["name", "owner", "size_bytes"];
  databases
    .command("list <service>")
    .description("its databases with their sizes")
    .action(async (name: string, _flags: object, command: Command) => {
      const context = openContext(command, deps);
      const found: Database[] = [];
      for await (const database of context.client.databases.list((await context.service(name)).id))
        found.push(database);
      context.output.list(found, columns);
    });
  databases
    .command("create <service> <name>")
    .description("make a database")
    .action(async (service: string, name: string, _flags: object, command: Command) => {
      const context = openContext(command, deps);
      context.output.show(await context.client.databases.create((await context.service(service)).id, name), columns);
    });
  databases
    .command("delete <service> <name>")
    .description("drop a database with its data")
    .option("--yes", "do not ask")
    .action(async (service: string, name: string, { yes }: { yes?: boolean }, command: Command) => {
      const context = openContext(command, deps);
      if (yes !== true && !(await deps.confirm(`Drop ${name} with its data?`)))
        throw new UsageError("not dropped; --yes skips the question");
      await context.client.databases.delete((await context.service(service)).id, name);
      context.output.say(`${name} is dropped`);
    });
}

function addConfig(config: Command, deps: CliDeps): void {
  const columns = ["name", "value", "default", "status", "reason"];
  const show = (command: Command, { parameters }: { parameters: Readonly<Record<string, object>> }) =>
    openContext(command, deps).output.list(
      Object.entries(parameters).map(([name, state]) => ({ name, ...state })),
      columns,
    );
  config
    .command("get <service>")
    .description("parameters with their values")
    .action(async (name: string, _flags: object, command: Command) => {
      const context = openContext(command, deps);
      show(command, await context.client.configuration.get((await context.service(name)).id));
    });
  config
    .command("set <service> <changes...>")
    .description("name=value sets, name alone resets")
    .action(async (name: string, changes: string[], _flags: object, command: Command) => {
      const context = openContext(command, deps);
      const parameters = Object.fromEntries(
        changes.map((change) => {
          const equals = change.indexOf("=");
          return equals < 0 ? [change, null] : [change.slice(0, equals), change.slice(equals + 1)];
        }),
      );
      show(command, await context.client.configuration.update((await context.service(name)).id, parameters));
    });
}
