import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";
import { organizationOf } from "../organization.ts";

const columns = ["id", "name", "created_at"];
const fields = ["id", "name", "usage", "quota", "created_at"];

export function addOrgs(orgs: CliCommand): void {
  orgs
    .command("list")
    .description("all of them; a key and a token know only their own")
    .example("orgs list")
    .does(async ({ widest, output }) => output.list(await take(widest.organizations.list()), columns));

  orgs
    .command("create <name>")
    .description("make one; you are its owner")
    .example("orgs create acme")
    .does(async ({ person, output, program }, name: string) => {
      const made = await (await person()).organizations.create(name);
      output.show(made, fields);
      output.say(`\nTo act in it: --organization ${made.id}, or HOLDFAST_ORGANIZATION, or ${program} login`);
    });

  orgs
    .command("get [organization]")
    .description("one of them with its quota; the one that you act in when none is named")
    .example("orgs get")
    .does(async ({ client, output }, id?: string) =>
      output.show(await client.organizations.get(id ?? (await organizationOf(client))), fields),
    );

  orgs
    .command("rename <name>")
    .description("give the organization that you act in another name")
    .example("orgs rename acme-europe")
    .does(async ({ client, output }, name: string) =>
      output.show(await client.organizations.rename(await organizationOf(client), name), fields),
    );

  orgs
    .command("delete <organization>")
    .description("delete an organization without services, with its keys and tokens")
    .option("--yes", "do not ask")
    .example("orgs delete 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Delete the organization ${id} with its keys and tokens?`, yes);
      await client.organizations.delete(id);
      output.say(`${id} is deleted`);
    });
}
