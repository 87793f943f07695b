import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";
import { organizationOf } from "../lookup.ts";

const columns = ["id", "name", "created_at"];
const fields = ["id", "name", "quotas", "created_at"];

export function addOrgs(orgs: CliCommand): void {
  orgs
    .command("list")
    .description("list your organizations; an API key or token sees only its own")
    .example("orgs list")
    .does(async ({ userClient, output }) => output.list(await take(userClient.organizations.list()), columns));

  orgs
    .command("create <name>")
    .description("create an organization; you become its owner")
    .example("orgs create acme")
    .does(async ({ passwordClient, output, program }, name: string) => {
      const created = await (await passwordClient()).organizations.create(name);
      output.show(created, fields);
      output.info(`\nTo act in it: --organization ${created.id}, or HOLDFAST_ORGANIZATION, or ${program} login`);
    });

  orgs
    .command("get [organization]")
    .description("show an organization with its quota; the current one by default")
    .example("orgs get")
    .does(async ({ client, output }, id?: string) =>
      output.show(await client.organizations.get(id ?? (await organizationOf(client))), fields),
    );

  orgs
    .command("rename <name>")
    .description("rename the current organization")
    .example("orgs rename acme-europe")
    .does(async ({ client, output }, name: string) =>
      output.show(await client.organizations.rename(await organizationOf(client), name), fields),
    );

  orgs
    .command("delete <organization>")
    .description("delete an organization without services, with its keys and tokens")
    .option("--yes", "do not ask for confirmation")
    .example("orgs delete 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Delete the organization ${id} with its keys and tokens?`, yes);
      await client.organizations.delete(id);
      output.info(`${id} is deleted`);
    });
}
