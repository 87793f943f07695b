import type { AppDomain } from "../../index.ts";
import { appOf } from "../app-of.ts";
import type { CliCommand } from "../command.ts";
import { given, take } from "../flag-values.ts";

const columns = ["name", "id", "status", "home_url", "attachments"];

export function addApps(apps: CliCommand): void {
  apps
    .command("list")
    .description("all apps")
    .example("apps list")
    .does(async ({ client, output }) => output.list(await take(client.apps.list()), columns));

  apps
    .command("create <name>")
    .description("make an app that runs anywhere")
    .option("--home <url>", "where its users find it")
    .example("apps create shop --home https://shop.example")
    .does(async ({ client, output }, name: string, { home }: { home?: string }) =>
      output.show(await client.apps.create({ name, ...given({ home_url: home }) }), columns),
    );

  apps
    .command("get <app>")
    .description("one app")
    .example("apps get shop")
    .does(async (context, app: string) => context.output.show(await appOf(context, app), columns));

  apps
    .command("update <app>")
    .description("change where its users find it")
    .option("--home <url>", "where its users find it")
    .example("apps update shop --home https://shop.example")
    .does(async (context, app: string, { home }: { home?: string }) => {
      const { id } = await appOf(context, app);
      context.output.show(await context.client.apps.update(id, given({ home_url: home })), columns);
    });

  apps
    .command("delete <app>")
    .description("end it, and its sign-in; its users stay in the database")
    .option("--yes", "do not ask")
    .example("apps delete shop")
    .does(async (context, app: string, { yes }: { yes?: boolean }) => {
      const { id, name } = await appOf(context, app);
      await context.confirm(`Delete the app ${name}, and end its sign-in?`, yes);
      await context.client.apps.delete(id);
      context.output.say(`${name} is deleted`);
    });

  apps
    .command("attach <app> <service>")
    .description("let it use a database of a PostgreSQL service")
    .option("--database <database>", "which database; the service's own when it is not named")
    .example("apps attach shop orders")
    .does(async (context, app: string, service: string, { database }: { database?: string }) => {
      const { id } = await appOf(context, app);
      const service_id = await context.serviceId(service);
      const attachment = { service_id, ...given({ database_name: database }) };
      context.output.show(await context.client.apps.attach(id, attachment));
    });

  apps
    .command("detach <app> <attachment>")
    .description("end an attachment, by its id")
    .example("apps detach shop 019a...")
    .does(async (context, app: string, attachment: string) => {
      const { id } = await appOf(context, app);
      await context.client.apps.detach(id, attachment);
      context.output.say(`${attachment} is detached`);
    });

  addDomains(apps.command("domains").description("domains that its issuer may be under"));
}

const domainColumns = ["name", "id", "status", "verification"];

function addDomains(domains: CliCommand): void {
  domains
    .command("list <app>")
    .description("all of them, with the records that show whose they are")
    .example("apps domains list shop")
    .does(async (context, app: string) => context.output.list((await appOf(context, app)).domains, domainColumns));

  domains
    .command("add <app> <domain>")
    .description("name one; the answer has the TXT record that it needs")
    .example("apps domains add shop login.shop.example")
    .does(async (context, app: string, name: string) => {
      const { id } = await appOf(context, app);
      context.output.show(await context.client.apps.addDomain(id, { name }), domainColumns);
    });

  domains
    .command("verify <app> <domain>")
    .description("look for the TXT record")
    .example("apps domains verify shop login.shop.example")
    .does(async (context, app: string, domain: string) => {
      const { id, domains: known } = await appOf(context, app);
      context.output.show(await context.client.apps.verifyDomain(id, domainId(known, domain)), domainColumns);
    });

  domains
    .command("delete <app> <domain>")
    .description("end one")
    .option("--yes", "do not ask")
    .example("apps domains delete shop login.shop.example")
    .does(async (context, app: string, domain: string, { yes }: { yes?: boolean }) => {
      const { id, domains: known } = await appOf(context, app);
      await context.confirm(`Delete the domain ${domain} of ${app}?`, yes);
      await context.client.apps.deleteDomain(id, domainId(known, domain));
      context.output.say(`${domain} is deleted`);
    });
}

function domainId(domains: readonly AppDomain[], nameOrId: string): string {
  return domains.find(({ id, name }) => id === nameOrId || name === nameOrId)?.id ?? nameOrId;
}
