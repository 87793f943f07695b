import type { Role } from "../../answers.ts";
import { Argument, Option } from "commander";
import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";
import { organizationOf } from "../organization.ts";

const columns = ["user_id", "role", "created_at"];
const roles: readonly Role[] = ["viewer", "developer", "admin", "owner"];
const roleFlag = () => new Option("--role <role>", "what they may do").choices(roles).default("viewer");

export function addMembers(members: CliCommand): void {
  members
    .command("list")
    .description("all of them")
    .example("members list")
    .does(async ({ client, output }) =>
      output.list(await take(client.members.list(await organizationOf(client))), columns),
    );

  members
    .command("invite <name>")
    .description("make a person and a member of them; with the setup token, shown this once, they set a password")
    .addOption(roleFlag())
    .example("members invite anna --role developer")
    .does(async ({ client, output, program }, name: string, { role }: { role: Role }) => {
      const made = await client.users.create(name);
      output.show({ ...made, ...(await client.members.add(await organizationOf(client), name, role)) });
      output.say(`\nThey sign in by: ${program} login --set-up`);
    });

  members
    .command("add <person>")
    .description("make a person who is known here a member")
    .addOption(roleFlag())
    .example("members add bert --role admin")
    .does(async ({ client, output }, person: string, { role }: { role: Role }) =>
      output.show(await client.members.add(await organizationOf(client), person, role), columns),
    );

  members
    .command("set-role")
    .argument("<member>")
    .addArgument(new Argument("<role>").choices(roles))
    .description("change what a member may do")
    .example("members set-role anna admin")
    .does(async ({ client, output }, member: string, role: Role) =>
      output.show(await client.members.update(await organizationOf(client), member, role), columns),
    );

  members
    .command("forget <person>")
    .description("delete a person that the organization made, once they are a member of none; the name is free then")
    .option("--yes", "do not ask")
    .example("members forget anna")
    .does(async ({ client, confirm }, person: string, { yes }: { yes?: boolean }) => {
      await confirm(`Delete ${person}?`, yes);
      await client.users.delete(person);
    });

  members
    .command("reset <member>")
    .description("give a person who lost their password a new setup token; the old password ends at once")
    .option("--yes", "do not ask")
    .example("members reset anna")
    .does(async ({ client, output, confirm }, member: string, { yes }: { yes?: boolean }) => {
      await confirm(`End the password of ${member}?`, yes);
      output.show(await client.users.reset(member));
    });

  members
    .command("remove <member>")
    .description("end a membership, and the tokens that the member made")
    .option("--yes", "do not ask")
    .example("members remove anna")
    .does(async ({ client, output, confirm }, member: string, { yes }: { yes?: boolean }) => {
      await confirm(`End the membership of ${member}?`, yes);
      await client.members.remove(await organizationOf(client), member);
      output.say(`${member} is no member any more`);
    });
}
