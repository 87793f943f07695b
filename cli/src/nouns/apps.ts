import { domainToASCII } from "node:url";
import { NotFound } from "@holdfast/sdk/errors.ts";
import type { App, AppDomain, Attachment, FilesAccess, HostedAppAuth } from "@holdfast/sdk/responses.ts";
import { Option } from "commander";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { omitUndefined, take } from "../flag-values.ts";
import { UsageError } from "../exit-code.ts";
import { appOf, isId, monitoredOf, notFound } from "../lookup.ts";
import { addAppHosting, appColumns, appView, authOption, showApp, waitForDeployment } from "./app-hosting.ts";
import { addAppViews } from "./app-views.ts";
import { waitForOperation } from "./operation-wait.ts";
import { type WaitFlags, withWait } from "./service-wait.ts";

interface AttachFlags extends WaitFlags {
  readonly prefix?: string;
  readonly database?: string;
  readonly access?: FilesAccess;
}

const accesses: readonly FilesAccess[] = ["readwrite", "readonly"];

/** Columns of lists, which have no space for the URL. */
const listColumns = appColumns.filter((column) => column !== "url");

export function addApps(apps: CliCommand): void {
  apps
    .command("list")
    .description("list all apps")
    .example("apps list")
    .does(async ({ client, output }) => output.list((await take(client.apps.list())).map(appView), listColumns));

  addAppHosting(apps);
  addAppViews(apps);

  apps
    .command("get <app>")
    .description("show an app")
    .example("apps get shop")
    .does(async (context, nameOrId: string) => {
      const app = await appOf(context, nameOrId);
      showApp(context, app);
      await showAttachments(context, app);
    });

  apps
    .command("update <app>")
    .description("change the URL of the app's home page, or the sign-in in front of a hosted app")
    .option("--home <url>", "URL of the app's home page")
    .addOption(authOption())
    .example("apps update shop --home https://shop.example")
    .example("apps update shop --auth login_form")
    .does(async (context, app: string, { home, auth }: { home?: string; auth?: HostedAppAuth }) => {
      const { id } = await appOf(context, app);
      const changed = await context.client.apps.update(id, omitUndefined({ home_url: home, auth }));
      showApp(context, changed);
    });

  const remove = apps
    .command("delete <app>")
    .description("delete an app, its machines and its sign-in; its users remain in the database")
    .option("--yes", "do not ask for confirmation");
  withWait(remove)
    .example("apps delete shop")
    .does(async (context, app: string, flags: WaitFlags & { yes?: boolean }) => {
      const { id, name } = await appOf(context, app);
      await context.confirm(`Delete the app ${name}, and end its sign-in?`, flags.yes);
      const { operation } = await context.client.apps.delete(id);
      if (operation !== null && flags.wait === true) await waitForOperation(context, operation, name, flags.timeout);
      const isOver = operation === null || flags.wait === true;
      context.output.info(`${name} is ${isOver ? "deleted" : `being deleted by operation ${operation.id}`}`);
    });

  const attach = apps
    .command("attach <app> <service>")
    .description("attach a database, a files service with a separate key or a hosted app; deploys a hosted app again")
    .option("--database <database>", "database; the service's default database by default")
    .option("--prefix <prefix>", "prefix of a hosted app's variables; the service's name by default")
    .addOption(new Option("--access <access>", "access to a files service; readwrite by default").choices(accesses));
  withWait(attach)
    .example("apps attach shop orders --wait")
    .example("apps attach shop media --access readonly")
    .does(async (context, app: string, service: string, { database, access, prefix, ...flags }: AttachFlags) => {
      const { id, name } = await appOf(context, app);
      const { id: service_id } = await attachableOf(context, service);
      const attachment = { service_id, ...omitUndefined({ database_name: database, access, prefix }) };
      const { variables, operation, ...attached } = await context.client.apps.attach(id, attachment);
      if (operation !== null && flags.wait === true)
        await waitForDeployment(context, operation, id, name, flags.timeout);
      const environment = Object.fromEntries(variables.map(({ name, value }) => [name, value]));
      context.output.show({ ...attached, ...environment });
      if (variables.length > 0)
        context.output.info(
          "The app's variables for all its files services. Replace the earlier ones: names may differ.",
        );
    });

  const detach = apps
    .command("detach <app> <attachment>")
    .description("detach a database, a files service, whose key ends, or an app: by its name, its prefix or an id");
  withWait(detach)
    .example("apps detach shop orders --wait")
    .does(async (context, nameOrId: string, attached: string, flags: WaitFlags) => {
      const app = await appOf(context, nameOrId);
      const attachmentId = await attachmentIdOf(context, app, attached);
      await context.client.apps.detach(app.id, attachmentId);
      const { operation } = await context.client.apps.get(app.id);
      if (operation !== null && flags.wait === true)
        await waitForDeployment(context, operation, app.id, app.name, flags.timeout);
      context.output.info(`${attached} is detached`);
      if (operation !== null && flags.wait !== true)
        context.output.info(
          `To wait until the app runs without it: ${context.program} operations wait ${operation.id}`,
        );
    });

  addDomains(apps.command("domains").description("domains at which clients reach the app, or its issuer"));
}

/** The id of an app's attachment by its prefix, or by the name or the id of what is attached. */
async function attachmentIdOf(context: Context, { attachments }: App, text: string): Promise<string> {
  const direct = attachments.find(({ id, prefix }) => id === text || prefix === text);
  if (direct !== undefined) return direct.id;
  const { id: serviceId } = attachments.some(({ service_id: id }) => id === text)
    ? { id: text }
    : await attachableOf(context, text).catch((error: unknown) => {
        // The API has the error of an id that is not an attachment.
        if (error instanceof NotFound && isId(text)) return { id: "" };
        throw error;
      });
  const [found, another] = attachments.filter(({ service_id: id }) => id === serviceId);
  if (found !== undefined && another !== undefined)
    throw new UsageError(`several databases of ${text} are attached: name one by its id, which apps get prints`);
  return found?.id ?? text;
}

/** Prints the attachments of an app as a table; other formats have them in the app. */
async function showAttachments({ client, output }: Context, { attachments }: App): Promise<void> {
  if (output.format !== "table" || attachments.length === 0) return;
  const nameOf = async ({ kind, service_id: id }: Attachment): Promise<string> => {
    const attached: Promise<{ readonly name: string }> =
      kind === "app" ? client.apps.get(id) : kind === "files" ? client.files.get(id) : client.services.get(id);
    return attached.then(
      ({ name }) => name,
      () => id,
    );
  };
  const rows = await Promise.all(attachments.map(async (each) => ({ ...each, attached: await nameOf(each) })));
  output.info("");
  output.list(rows, ["attached", "kind", "database_name", "prefix", "username", "status", "id"]);
}

/** A service or a hosted app, by name or id. Throws NotFound. */
function attachableOf(context: Context, nameOrId: string): Promise<{ readonly id: string }> {
  return monitoredOf(context, nameOrId).catch((error: unknown) => {
    if (!(error instanceof NotFound)) throw error;
    return appOf(context, nameOrId).catch(() => {
      throw error;
    });
  });
}

const domainColumns = ["name", "id", "status", "verification"];

function addDomains(domains: CliCommand): void {
  domains
    .command("list <app>")
    .description("list the domains of an app, with the DNS records for their verification")
    .example("apps domains list shop")
    .does(async (context, app: string) => context.output.list((await appOf(context, app)).domains, domainColumns));

  domains
    .command("get <app> <domain>")
    .description("show a domain with its certificate by a public authority")
    .example("apps domains get shop www.shop.example")
    .does(async (context, app: string, domain: string) => {
      const { domains: all } = await appOf(context, app);
      const found = all.find(({ id }) => id === domainId(all, domain));
      if (found === undefined) throw notFound("domain", domain);
      context.output.show(found, [...domainColumns, "certificate"]);
    });

  domains
    .command("add <app> <domain>")
    .description("add a domain; the output has the required TXT record")
    .example("apps domains add shop login.shop.example")
    .does(async (context, app: string, name: string) => {
      const { id } = await appOf(context, app);
      const added = await context.client.apps.addDomain(id, { name: asciiDomain(name) });
      context.output.show(added, domainColumns);
    });

  domains
    .command("verify <app> <domain>")
    .description("verify a domain by its TXT record")
    .example("apps domains verify shop login.shop.example")
    .does(async (context, app: string, domain: string) => {
      const { id, domains } = await appOf(context, app);
      context.output.show(await context.client.apps.verifyDomain(id, domainId(domains, domain)), domainColumns);
    });

  domains
    .command("delete <app> <domain>")
    .description("delete a domain")
    .option("--yes", "do not ask for confirmation")
    .example("apps domains delete shop login.shop.example")
    .does(async (context, app: string, domain: string, { yes }: { yes?: boolean }) => {
      const { id, domains } = await appOf(context, app);
      await context.confirm(`Delete the domain ${domain} of ${app}?`, yes);
      await context.client.apps.deleteDomain(id, domainId(domains, domain));
      context.output.info(`${domain} is deleted`);
    });
}

function domainId(domains: readonly AppDomain[], nameOrId: string): string {
  const ascii = asciiDomain(nameOrId);
  return domains.find(({ id, name }) => id === nameOrId || name === ascii)?.id ?? nameOrId;
}

/** The form of a domain in ASCII: www.xn--bcher-kva.example for www.bücher.example. The API takes this form alone. */
function asciiDomain(text: string): string {
  const domain = text.toLowerCase().replace(/\.$/, "");
  return domainToASCII(domain) || domain;
}
