import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { AppAuth, AuthTask, NewAuthSmtp } from "@holdfast/sdk/index.ts";
import { appOf } from "../lookup.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError, WorkFailed } from "../exit-code.ts";
import { omitUndefined, collect, take, integer } from "../flag-values.ts";

const columns = ["issuer_url", "status", "schema_version_applied", "sign_up", "failure_reason", "health"];
const clientColumns = [
  "client_id",
  "name",
  "type",
  "redirect_uris",
  "post_logout_redirect_uris",
  "allowed_origins",
  "client_secret",
];
const keyColumns = ["kid", "algorithm", "status", "activated_at", "retires_at"];
const pollIntervalMs = 300;

interface SmtpFlags {
  readonly smtp?: string;
  readonly smtpUser?: string;
  readonly smtpCa?: string;
  readonly from?: string;
  readonly fromName?: string;
}

interface EnableFlags extends SmtpFlags {
  readonly redirect?: readonly string[];
  readonly domain?: string;
  readonly displayName?: string;
  readonly brandColor?: string;
  readonly wait: boolean;
}

export function addAuth(auth: CliCommand): void {
  withSmtp(
    auth.command("enable <app>").description("enable sign-in for an app; its users are in the attached database"),
  )
    .option("--redirect <url>", "redirect URI of sign-ins (repeatable)", collect)
    .option("--domain <domain>", "a verified domain of the app for the issuer; the platform's domain by default")
    .option("--display-name <name>", "heading of pages and mails")
    .option("--brand-color <color>", "color of buttons and links, #rrggbb")
    .option("--no-wait", "return as soon as the request is accepted")
    .example("auth enable shop --smtp smtp.example.com:587 --smtp-user shop --from shop@example.com")
    .does(async (context, app: string, flags: EnableFlags) => {
      const { id, attachments } = await appOf(context, app);
      const attachment = attachments.find(({ database_name: database }) => database !== "");
      if (attachment === undefined)
        throw new UsageError(`${app} has no database: holdfast apps attach ${app} <service>`);
      const theme = omitUndefined({ display_name: flags.displayName, brand_color: flags.brandColor });
      const { auth: created } = await context.client.auth.enable(id, {
        attachment_id: attachment.id,
        smtp: await smtpOf(context, flags),
        ...(Object.keys(theme).length > 0 && { theme }),
        ...omitUndefined({ redirect_uris: flags.redirect }),
        ...(flags.domain !== undefined && { issuer_domain_choice: "custom", custom_domain: flags.domain }),
      });
      const current = flags.wait ? await untilActive(context, id) : created;
      context.output.show(current, columns);
      if (current.status === "Failed")
        throw new WorkFailed(`the sign-in of ${app} has failed: ${current.failure_reason ?? "without a reason"}`);
    });

  auth
    .command("get <app>")
    .description("show the sign-in of an app and its health")
    .example("auth get shop")
    .does(async (context, app: string) =>
      context.output.show(await context.client.auth.get((await appOf(context, app)).id), columns),
    );

  withSmtp(auth.command("update <app>").description("change the mail server, or who may sign up"))
    .option("--sign-up <how>", "open: anybody may sign up; closed: only you create users")
    .option("--mails-per-hour <count>", "maximum number of mails per hour", integer)
    .needs("--smtp-user", "--smtp")
    .needs("--smtp-ca", "--smtp")
    .needs("--from", "--smtp")
    .needs("--from-name", "--smtp")
    .example("auth update shop --sign-up closed")
    .does(async (context, app: string, flags: SmtpFlags & { signUp?: string; mailsPerHour?: number }) => {
      const change = omitUndefined({
        smtp: flags.smtp === undefined ? undefined : await smtpOf(context, flags),
        sign_up: flags.signUp as AppAuth["sign_up"] | undefined,
        mails_per_hour: flags.mailsPerHour,
      });
      context.output.show(await context.client.auth.update((await appOf(context, app)).id, change), columns);
    });

  auth
    .command("disable <app>")
    .description("disable sign-in; keys and users remain stored")
    .option("--yes", "do not ask for confirmation")
    .example("auth disable shop")
    .does(async (context, app: string, { yes }: { yes?: boolean }) => {
      await context.confirm(`Disable the sign-in of ${app}?`, yes);
      context.output.show(await context.client.auth.disable((await appOf(context, app)).id), columns);
    });

  auth
    .command("keys <app>")
    .description("list current and former signing keys of tokens")
    .example("auth keys shop")
    .does(async (context, app: string) => {
      const { keys } = await context.client.auth.keys((await appOf(context, app)).id);
      context.output.list(keys, keyColumns);
    });

  auth
    .command("rotate-key <app>")
    .description("rotate the signing key; tokens of the old key remain valid until they expire")
    .option("--emergency", "invalidate all tokens that were signed before")
    .option("--yes", "do not ask for confirmation")
    .example("auth rotate-key shop")
    .does(async (context, app: string, { emergency, yes }: { emergency?: boolean; yes?: boolean }) => {
      const { id } = await appOf(context, app);
      if (emergency === true) await context.confirm(`Invalidate all tokens of ${app}?`, yes);
      const { signing_key: key } = await context.client.auth.rotateKey(id, emergency);
      context.output.show(key, keyColumns);
    });

  auth
    .command("test-mail <app> <address>")
    .description("send a test mail through the mail server")
    .example("auth test-mail shop me@example.com")
    .does(async (context, app: string, to: string) => {
      const result = await context.client.auth.testSmtp((await appOf(context, app)).id, to);
      context.output.show(result);
      if (result.success) return;
      const advice = /certificate/i.test(result.error ?? "") ? ": auth update --smtp-ca FILE trusts its authority" : "";
      throw new WorkFailed(`the mail server has not accepted the mail${advice}`);
    });

  addProviders(auth.command("providers").description("identity providers that users may sign in with"));
  addClients(auth.command("clients").description("OAuth clients that sign users in"));
  addUsers(auth.command("users").description("end users of the app"));
}

const providerColumns = ["provider", "issuer_url", "client_id", "scopes", "callback_url"];

function addProviders(providers: CliCommand): void {
  providers
    .command("list <app>")
    .description("list all identity providers, without their secrets")
    .example("auth providers list shop")
    .does(async (context, app: string) => {
      const found = await context.client.auth.get((await appOf(context, app)).id);
      context.output.list(found.idp_providers, providerColumns);
    });

  providers
    .command("set <app> <provider>")
    .description("configure the provider google, or another one as oidc; asks for its secret")
    .option("--client-id <id>", "client id of the app at the provider")
    .option("--issuer <url>", "issuer URL of an oidc provider")
    .option("--scope <scope>", "scope in addition to openid and email (repeatable)", collect)
    .option("--ca <path>", "PEM file of the certificate authority, when it is not public")
    .example("auth providers set shop google --client-id 1234.apps.example")
    .does(async (context, app: string, provider: string, flags: ProviderFlags) => {
      if (flags.clientId === undefined) throw new UsageError("name the client by --client-id");
      const { id } = await appOf(context, app);
      const put = await context.client.auth.putProvider(id, provider, {
        client_id: flags.clientId,
        client_secret: await context.terminal.askSecret(`Secret of ${flags.clientId} at ${provider}`),
        ...omitUndefined({ issuer_url: flags.issuer, scopes: flags.scope }),
        ...(flags.ca !== undefined && { ca_certificate: await readFile(flags.ca, "utf8") }),
      });
      context.output.show(put, providerColumns);
    });

  providers
    .command("delete <app> <provider>")
    .description("delete a provider; its users sign in by mail from then on")
    .option("--yes", "do not ask for confirmation")
    .example("auth providers delete shop google")
    .does(async (context, app: string, provider: string, { yes }: { yes?: boolean }) => {
      await context.confirm(`Delete the provider ${provider} of ${app}?`, yes);
      await context.client.auth.deleteProvider((await appOf(context, app)).id, provider);
      context.output.info(`${provider} is deleted`);
    });
}

interface ProviderFlags {
  readonly clientId?: string;
  readonly issuer?: string;
  readonly scope?: readonly string[];
  readonly ca?: string;
}

function addClients(clients: CliCommand): void {
  clients
    .command("list <app>")
    .description("list all OAuth clients, without their secrets")
    .example("auth clients list shop")
    .does(async (context, app: string) => {
      const found = await context.client.auth.clients((await appOf(context, app)).id);
      context.output.list(found.clients, clientColumns);
    });

  withUris(
    clients
      .command("create <app> <name>")
      .description("create a client; the secret of a confidential one is shown only once"),
  )
    .option("--confidential", "a confidential client, such as a server")
    .option("--without-pkce", "a client without PKCE, which must send a nonce")
    .example("auth clients create shop web --confidential --redirect https://shop.example/callback")
    .does(async (context, app: string, name: string, flags: ClientFlags) => {
      const { id } = await appOf(context, app);
      const client = await context.client.auth.createClient(id, {
        name,
        type: flags.confidential === true ? "confidential" : "public",
        redirect_uris: [],
        ...urisOf(flags),
        ...(flags.withoutPkce === true && { require_pkce: false }),
      });
      context.output.show(client, clientColumns);
    });

  withUris(
    clients
      .command("update <app> <client>")
      .description("change a client; the app's own client has the app's id; a list replaces the previous one"),
  )
    .option("--name <name>", "new name of the client")
    .example("auth clients update shop 019a... --post-logout https://shop.example/ --origin https://shop.example")
    .does(async (context, app: string, client: string, flags: UriFlags & { name?: string }) => {
      const change = omitUndefined({ name: flags.name, ...urisOf(flags) });
      if (Object.keys(change).length === 0)
        throw new UsageError("name a change: --name, --redirect, --post-logout or --origin");
      const { id } = await appOf(context, app);
      context.output.show(await context.client.auth.updateClient(id, client, change), clientColumns);
    });

  clients
    .command("rotate-secret <app> <client>")
    .description("give a client a new secret, shown only once; the old one is refused immediately")
    .option("--yes", "do not ask for confirmation")
    .example("auth clients rotate-secret shop 019a...")
    .does(async (context, app: string, client: string, { yes }: { yes?: boolean }) => {
      await context.confirm(
        `Give the client ${client} of ${app} a new secret? The old one is refused immediately.`,
        yes,
      );
      const { id } = await appOf(context, app);
      context.output.show(await context.client.auth.rotateClientSecret(id, client), clientColumns);
    });

  clients
    .command("delete <app> <client>")
    .description("delete a client")
    .option("--yes", "do not ask for confirmation")
    .example("auth clients delete shop 019a...")
    .does(async (context, app: string, client: string, { yes }: { yes?: boolean }) => {
      await context.confirm(`Delete the client ${client} of ${app}?`, yes);
      await context.client.auth.deleteClient((await appOf(context, app)).id, client);
      context.output.info(`${client} is deleted`);
    });
}

function addUsers(users: CliCommand): void {
  users
    .command("list <app>")
    .description("list end users, in the order of their ids")
    .option("--email <address>", "only the user with this address")
    .option("--limit <count>", "maximum number of entries", integer, 50)
    .example("auth users list shop")
    .does(async (context, app: string, { email, limit }: { email?: string; limit: number }) => {
      const { id } = await appOf(context, app);
      const found = await take(context.client.auth.users(id, omitUndefined({ email })), limit);
      context.output.list(found, ["id", "email", "email_verified", "last_sign_in_at"]);
    });

  users
    .command("create <app> <email>")
    .description("create a user before the first sign-in")
    .example("auth users create shop me@example.com")
    .does(async (context, app: string, email: string) =>
      context.output.show(await context.client.auth.createUser((await appOf(context, app)).id, email)),
    );

  users
    .command("delete <app>")
    .description("erase a user from all tables of the app")
    .option("--email <address>", "address of the user")
    .option("--id <id>", "id of the user")
    .option("--yes", "do not ask for confirmation")
    .example("auth users delete shop --email me@example.com")
    .does(async (context, app: string, flags: { email?: string; id?: string; yes?: boolean }) => {
      if ((flags.email === undefined) === (flags.id === undefined))
        throw new UsageError("name one of --email and --id");
      const { id } = await appOf(context, app);
      await context.confirm(`Erase ${flags.email ?? flags.id ?? ""} from ${app} for good?`, flags.yes);
      const task = await context.client.auth.eraseUser(id, flags.email, flags.id);
      context.output.show(await completed(context, task));
    });
}

interface UriFlags {
  readonly redirect?: readonly string[];
  readonly postLogout?: readonly string[];
  readonly origin?: readonly string[];
}

function withUris(command: CliCommand): CliCommand {
  return command
    .option("--redirect <uri>", "redirect URI of sign-ins, compared exactly (repeatable)", collect)
    .option("--post-logout <uri>", "URI to return to after sign-out, compared exactly (repeatable)", collect)
    .option("--origin <origin>", "origin whose scripts may call the issuer (repeatable)", collect);
}

function urisOf({ redirect, postLogout, origin }: UriFlags) {
  return omitUndefined({
    redirect_uris: redirect,
    post_logout_redirect_uris: postLogout,
    allowed_origins: origin,
  });
}

interface ClientFlags extends UriFlags {
  readonly confidential?: boolean;
  readonly withoutPkce?: boolean;
}

function withSmtp(command: CliCommand): CliCommand {
  return command
    .option("--smtp <host:port>", "mail server, with port 465, 587, 25 or 2525")
    .option("--smtp-user <name>", "user of the mail server; asks for the password")
    .option("--smtp-ca <path>", "PEM file of the certificate authority, when it is not public")
    .option("--from <address>", "sender address of mails")
    .option("--from-name <name>", "sender name of mails");
}

async function smtpOf({ terminal }: Context, flags: SmtpFlags): Promise<NewAuthSmtp> {
  const [, host = "", port = ""] = /^\[?(.+?)\]?:(\d+)$/.exec(flags.smtp ?? "") ?? [];
  if (host === "" || flags.from === undefined)
    throw new UsageError("name the mail server by --smtp host:port and --from");
  return {
    host,
    port: Number(port),
    from_address: flags.from,
    from_name: flags.fromName ?? "",
    ...(flags.smtpUser !== undefined && {
      username: flags.smtpUser,
      password: await terminal.askSecret(`Password of ${flags.smtpUser} at ${host}`),
    }),
    ...(flags.smtpCa !== undefined && { ca_certificate: await readFile(flags.smtpCa, "utf8") }),
  };
}

async function untilActive({ client, signal }: Context, id: string): Promise<AppAuth> {
  for (;;) {
    const found = await client.auth.get(id, { signal });
    if (found.status !== "ProvisioningSchema") return found;
    await delay(pollIntervalMs, undefined, { signal });
  }
}

async function completed({ client, signal }: Context, { task_id: taskId }: AuthTask): Promise<object> {
  for (;;) {
    const task = await client.tasks.get(taskId, { signal });
    if (task.status === "completed") return task.result as object;
    if (task.status === "failed") throw new UsageError(task.error?.message ?? "the task failed");
    await delay(pollIntervalMs, undefined, { signal });
  }
}
