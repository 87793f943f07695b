import type { Role } from "@holdfast/sdk/responses.ts";
import { Argument, Option } from "commander";
import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";
import { organizationOf } from "../lookup.ts";

const columns = ["user_id", "role", "created_at"];
const roles: readonly Role[] = ["viewer", "developer", "admin", "owner"];
const roleFlag = () => new Option("--role <role>", "role of the member").choices(roles).default("viewer");

export function addMembers(members: CliCommand): void {
  members
    .command("list")
    .description("members of the organization")
    .example("members list")
    .does(async ({ client, output }) =>
      output.list(await take(client.members.list(await organizationOf(client))), columns),
    );

  members
    .command("invite <name>")
    .description("create a user and add them as a member; they set a password with the setup token, shown only once")
    .addOption(roleFlag())
    .example("members invite anna --role developer")
    .does(async ({ client, output, program }, name: string, { role }: { role: Role }) => {
      const created = await client.users.create(name);
      output.show({ ...created, ...(await client.members.add(await organizationOf(client), name, role)) });
      output.info(`\nTo sign in: ${program} login --set-up`);
    });

  members
    .command("add <user>")
    .description("add an existing user as a member")
    .addOption(roleFlag())
    .example("members add bert --role admin")
    .does(async ({ client, output }, user: string, { role }: { role: Role }) =>
      output.show(await client.members.add(await organizationOf(client), user, role), columns),
    );

  members
    .command("set-role")
    .argument("<member>")
    .addArgument(new Argument("<role>").choices(roles))
    .description("change the role of a member")
    .example("members set-role anna admin")
    .does(async ({ client, output }, member: string, role: Role) =>
      output.show(await client.members.update(await organizationOf(client), member, role), columns),
    );

  members
    .command("delete-user <user>")
    .alias("forget")
    .description("delete a user that the organization created and that is a member of no organization; frees the name")
    .option("--yes", "do not ask for confirmation")
    .example("members delete-user anna")
    .does(async ({ client, confirm }, user: string, { yes }: { yes?: boolean }) => {
      await confirm(`Delete the user ${user}?`, yes);
      await client.users.delete(user);
    });

  members
    .command("reset <member>")
    .description("give a member a new setup token for a lost password; the old password becomes invalid immediately")
    .option("--yes", "do not ask for confirmation")
    .example("members reset anna")
    .does(async ({ client, output, confirm }, member: string, { yes }: { yes?: boolean }) => {
      await confirm(`Invalidate the password of ${member}?`, yes);
      output.show(await client.users.reset(member));
    });

  members
    .command("remove <member>")
    .description("remove a member, and the tokens that they created")
    .option("--yes", "do not ask for confirmation")
    .example("members remove anna")
    .does(async ({ client, output, confirm }, member: string, { yes }: { yes?: boolean }) => {
      await confirm(`End the membership of ${member}?`, yes);
      await client.members.remove(await organizationOf(client), member);
      output.info(`${member} is not a member any more`);
    });
}
