import { Option } from "commander";
import type { UserRole } from "../../types.ts";
import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";

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

  users
    .command("create <service> <name>")
    .description("make a user; `users password` shows its password")
    .addOption(
      new Option("--role <role>", "what it may do").choices(["admin", "readwrite", "readonly"]).default("readwrite"),
    )
    .example("users create orders reports --role readonly")
    .does(async ({ client, output, serviceId }, name: string, username: string, { role }: { role: UserRole }) =>
      output.show(await client.databaseUsers.create(await serviceId(name), { username, role }), columns),
    );

  users
    .command("delete <service> <user>")
    .description("remove a user")
    .option("--yes", "do not ask")
    .example("users delete orders reports")
    .does(async ({ client, output, serviceId, confirm }, name: string, user: string, { yes }: { yes?: boolean }) => {
      const id = await serviceId(name);
      await confirm(`Remove the user ${user} from ${name}?`, yes);
      await client.databaseUsers.delete(id, user);
      output.say(`${user} is removed`);
    });

  users
    .command("password <service> <user>")
    .description("print the user's password")
    .option("--reset", "give it a new one first; the old one ends at once")
    .option("--yes", "do not ask")
    .example("users password orders app_user")
    .example("users password orders reports --reset")
    .does(async (context, name: string, user: string, { reset, yes }: { reset?: boolean; yes?: boolean }) => {
      const { databaseUsers } = context.client;
      const id = await context.serviceId(name);
      if (reset === true)
        await context.confirm(`Give ${user} of ${name} a new password? The old one ends at once.`, yes);
      const answer = await (reset === true
        ? databaseUsers.resetPassword(id, user)
        : databaseUsers.revealPassword(id, user));
      if (context.output.format === "table") context.output.print(answer.password);
      else context.output.show(answer);
    });
}
