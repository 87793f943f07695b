import type { UserRole } from "../../answers.ts";
import { Option } from "commander";
import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";
import { settle } from "./operation-wait.ts";
import { type WaitFlags, withWait } from "./service-wait.ts";

const columns = ["username", "role", "managed", "created_at"];

export function addUsers(users: CliCommand): void {
  users
    .command("list <service>")
    .description("all users, those made in SQL too")
    .example("users list orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.databaseUsers.list(await serviceId(name))), columns),
    );

  users
    .command("get <service> <user>")
    .description("one user")
    .example("users get orders app_user")
    .does(async ({ client, output, serviceId }, name: string, user: string) =>
      output.show(await client.databaseUsers.get(await serviceId(name), user), columns),
    );

  withWait(
    users
      .command("create <service> <name>")
      .description("make a user; `users password` shows its password")
      .addOption(
        new Option("--role <role>", "what it may do").choices(["admin", "readwrite", "readonly"]).default("readwrite"),
      ),
  )
    .example("users create orders reports --role readonly")
    .does(async (context, name: string, username: string, flags: WaitFlags & { role: UserRole }) => {
      const { databaseUsers } = context.client;
      const id = await context.serviceId(name);
      const made = await databaseUsers.create(id, { username, role: flags.role });
      const isDone = await settle(context, made.operation, username, flags);
      context.output.show(isDone ? { ...made, operation: null } : made, columns);
    });

  withWait(users.command("delete <service> <user>").description("remove a user").option("--yes", "do not ask"))
    .example("users delete orders reports")
    .does(async (context, name: string, user: string, flags: WaitFlags & { yes?: boolean }) => {
      const id = await context.serviceId(name);
      await context.confirm(`Remove the user ${user} from ${name}?`, flags.yes);
      const { operation } = await context.client.databaseUsers.delete(id, user);
      if (await settle(context, operation, user, flags)) context.output.say(`${user} is removed`);
    });

  withWait(
    users
      .command("password <service> <user>")
      .description("print the user's password")
      .option("--reset", "give it a new one first; the old one ends as soon as the engine has it")
      .option("--yes", "do not ask"),
  )
    .example("users password orders app_user")
    .example("users password orders reports --reset")
    .does(async (context, name: string, user: string, flags: WaitFlags & { reset?: boolean; yes?: boolean }) => {
      const { reset, yes } = flags;
      const { databaseUsers } = context.client;
      const id = await context.serviceId(name);
      if (reset === true)
        await context.confirm(`Give ${user} of ${name} a new password? The old one ends with it.`, yes);
      const answer = await (reset === true
        ? databaseUsers.resetPassword(id, user)
        : databaseUsers.revealPassword(id, user));
      await settle(context, answer.operation, user, flags);
      if (context.output.format === "table") context.output.print(answer.password);
      else context.output.show(answer);
    });
}
