import type { UserRole } from "@holdfast/sdk/responses.ts";
import { Option } from "commander";
import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";
import { waitIfRequested } from "./operation-wait.ts";
import { type WaitFlags, withWait } from "./service-wait.ts";

interface CreateFlags {
  readonly role: UserRole;
  readonly replication?: true;
}

const columns = ["username", "role", "replication", "managed", "created_at"];

export function addUsers(users: CliCommand): void {
  users
    .command("list <service>")
    .description("list all users, also those created in SQL")
    .example("users list orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.databaseUsers.list(await serviceId(name))), columns),
    );

  users
    .command("get <service> <user>")
    .description("show a user")
    .example("users get orders app_user")
    .does(async ({ client, output, serviceId }, name: string, user: string) =>
      output.show(await client.databaseUsers.get(await serviceId(name), user), columns),
    );

  withWait(
    users
      .command("create <service> <name>")
      .description("create a user; `users password` shows the password")
      .addOption(
        new Option("--role <role>", "role of the user")
          .choices(["admin", "readwrite", "readonly"])
          .default("readwrite"),
      )
      .option("--replication", "allow the user to consume logical replication slots (change data capture)"),
  )
    .example("users create orders reports --role readonly")
    .example("users create orders debezium --role readonly --replication")
    .does(async (context, name: string, username: string, flags: WaitFlags & CreateFlags) => {
      const { databaseUsers } = context.client;
      const id = await context.serviceId(name);
      const created = await databaseUsers.create(id, {
        username,
        role: flags.role,
        ...(flags.replication && { replication: true }),
      });
      const isDone = await waitIfRequested(context, created.operation, username, flags);
      context.output.show(isDone ? { ...created, operation: null } : created, columns);
    });

  withWait(
    users
      .command("update <service> <user>")
      .description("change whether a user may consume logical replication slots")
      .addOption(
        new Option("--replication <state>", "on: the user may; off: the user may not")
          .choices(["on", "off"])
          .makeOptionMandatory(),
      ),
  )
    .example("users update orders app_user --replication on")
    .does(async (context, name: string, user: string, flags: WaitFlags & { replication: "on" | "off" }) => {
      const id = await context.serviceId(name);
      const changed = await context.client.databaseUsers.update(id, user, { replication: flags.replication === "on" });
      const isDone = await waitIfRequested(context, changed.operation, user, flags);
      context.output.show(isDone ? { ...changed, operation: null } : changed, columns);
    });

  withWait(
    users
      .command("delete <service> <user>")
      .description("delete a user")
      .option("--yes", "do not ask for confirmation"),
  )
    .example("users delete orders reports")
    .does(async (context, name: string, user: string, flags: WaitFlags & { yes?: boolean }) => {
      const id = await context.serviceId(name);
      await context.confirm(`Delete the user ${user} of ${name}?`, flags.yes);
      const { operation } = await context.client.databaseUsers.delete(id, user);
      if (await waitIfRequested(context, operation, user, flags)) context.output.info(`${user} is deleted`);
    });

  withWait(
    users
      .command("password <service> <user>")
      .description("print the user's password")
      .option("--reset", "set a new password first; the old one becomes invalid once the engine has applied it")
      .option("--yes", "do not ask for confirmation"),
  )
    .example("users password orders app_user")
    .example("users password orders reports --reset")
    .does(async (context, name: string, user: string, flags: WaitFlags & { reset?: boolean; yes?: boolean }) => {
      const { reset, yes } = flags;
      const { databaseUsers } = context.client;
      const id = await context.serviceId(name);
      if (reset === true)
        await context.confirm(`Give ${user} of ${name} a new password? The old one becomes invalid.`, yes);
      const password = await (reset === true
        ? databaseUsers.resetPassword(id, user)
        : databaseUsers.revealPassword(id, user));
      await waitIfRequested(context, password.operation, user, flags);
      if (context.output.format === "table") context.output.print(password.password);
      else context.output.show(password);
    });
}
