import type { Organization } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";
import { organizationOf } from "../lookup.ts";
import type { Output } from "../output.ts";

const columns = ["id", "name", "created_at"];

/** Shows an organization, and each quota in a line of a table. */
function showOrganization(output: Output, organization: Organization): void {
  output.show(organization, columns);
  const { quotas: all } = organization as Partial<Organization>;
  // An earlier release sends none.
  if (output.format !== "table" || all === undefined) return;
  output.info("");
  const quotas = Object.entries(all).map(([quota, figures]) => ({ quota, ...figures }));
  output.list(quotas, ["quota", "used", "limit"]);
}

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
      showOrganization(output, created);
      output.info(`\nTo act in it: --organization ${created.id}, or HOLDFAST_ORGANIZATION, or ${program} login`);
    });

  orgs
    .command("get [organization]")
    .description("show an organization with its quotas; the current one by default")
    .example("orgs get")
    .does(async ({ client, output }, id?: string) =>
      showOrganization(output, await client.organizations.get(id ?? (await organizationOf(client)))),
    );

  orgs
    .command("rename <name>")
    .description("rename the current organization")
    .example("orgs rename acme-europe")
    .does(async ({ client, output }, name: string) =>
      showOrganization(output, await client.organizations.rename(await organizationOf(client), name)),
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
