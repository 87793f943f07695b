import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { AppAuth, AuthTask, NewAuthSmtp } from "../../index.ts";
import { appOf } from "../app-of.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { given, several, take, wholeNumber } from "../flag-values.ts";

const columns = ["issuer_url", "status", "schema_version_applied", "sign_up", "failure_reason", "health"];
const clientColumns = ["client_id", "name", "type", "redirect_uris", "client_secret"];
const keyColumns = ["kid", "algorithm", "status", "activated_at", "retires_at"];
const pauseMs = 300;

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
  withSmtp(auth.command("enable <app>").description("give it an issuer, with its users in its attached database"))
    .option("--redirect <url>", "where sign-ins return to; may be repeated", several)
    .option(
      "--domain <domain>",
      "a verified domain of the app that the issuer is under; the platform's unless it is given",
    )
    .option("--display-name <name>", "what its pages and mails are headed with")
    .option("--brand-color <color>", "#rrggbb")
    .option("--no-wait", "answer as soon as it is written down")
    .example("auth enable shop --smtp smtp.example.com:587 --smtp-user shop --from shop@example.com")
    .does(async (context, app: string, flags: EnableFlags) => {
      const { id, attachments } = await appOf(context, app);
      const [attachment] = attachments;
      if (attachment === undefined)
        throw new UsageError(`${app} has no database: holdfast apps attach ${app} <service>`);
      const theme = given({ display_name: flags.displayName, brand_color: flags.brandColor });
      const { auth: made } = await context.client.auth.enable(id, {
        attachment_id: attachment.id,
        smtp: await smtpOf(context, flags),
        ...(Object.keys(theme).length > 0 && { theme }),
        ...given({ redirect_uris: flags.redirect }),
        ...(flags.domain !== undefined && { issuer_domain_choice: "custom", custom_domain: flags.domain }),
      });
      context.output.show(flags.wait ? await untilActive(context, id) : made, columns);
    });

  auth
    .command("get <app>")
    .description("its issuer, and how it does")
    .example("auth get shop")
    .does(async (context, app: string) =>
      context.output.show(await context.client.auth.get((await appOf(context, app)).id), columns),
    );

  withSmtp(auth.command("update <app>").description("change its mail server, or who may sign up"))
    .option("--sign-up <how>", "open, or closed: only users that you make")
    .option("--mails-per-hour <count>", "mails of all sign-ins together", wholeNumber)
    .example("auth update shop --sign-up closed")
    .does(async (context, app: string, flags: SmtpFlags & { signUp?: string; mailsPerHour?: number }) => {
      const change = given({
        smtp: flags.smtp === undefined ? undefined : await smtpOf(context, flags),
        sign_up: flags.signUp as AppAuth["sign_up"] | undefined,
        mails_per_hour: flags.mailsPerHour,
      });
      context.output.show(await context.client.auth.update((await appOf(context, app)).id, change), columns);
    });

  auth
    .command("disable <app>")
    .description("end sign-ins; keys and users stay")
    .option("--yes", "do not ask")
    .example("auth disable shop")
    .does(async (context, app: string, { yes }: { yes?: boolean }) => {
      await context.confirm(`End the sign-in of ${app}?`, yes);
      context.output.show(await context.client.auth.disable((await appOf(context, app)).id), columns);
    });

  auth
    .command("keys <app>")
    .description("the keys that sign its tokens, or have")
    .example("auth keys shop")
    .does(async (context, app: string) => {
      const { keys } = await context.client.auth.keys((await appOf(context, app)).id);
      context.output.list(keys, keyColumns);
    });

  auth
    .command("rotate-key <app>")
    .description("sign with another key; tokens of the one before hold until they are over")
    .option("--emergency", "trust nothing that was signed before")
    .option("--yes", "do not ask")
    .example("auth rotate-key shop")
    .does(async (context, app: string, { emergency, yes }: { emergency?: boolean; yes?: boolean }) => {
      const { id } = await appOf(context, app);
      if (emergency === true) await context.confirm(`End every token that ${app} has handed out?`, yes);
      const { signing_key: key } = await context.client.auth.rotateKey(id, emergency);
      context.output.show(key, keyColumns);
    });

  auth
    .command("test-mail <app> <address>")
    .description("send one mail through its mail server")
    .example("auth test-mail shop me@example.com")
    .does(async (context, app: string, to: string) =>
      context.output.show(await context.client.auth.testSmtp((await appOf(context, app)).id, to)),
    );

  addProviders(auth.command("providers").description("others that its users may sign in with"));
  addClients(auth.command("clients").description("programs that sign its users in"));
  addUsers(auth.command("users").description("its end users"));
}

const providerColumns = ["provider", "issuer_url", "client_id", "scopes", "callback_url"];

function addProviders(providers: CliCommand): void {
  providers
    .command("list <app>")
    .description("all of them, without their secrets")
    .example("auth providers list shop")
    .does(async (context, app: string) => {
      const found = await context.client.auth.get((await appOf(context, app)).id);
      context.output.list(found.idp_providers, providerColumns);
    });

  providers
    .command("set <app> <provider>")
    .description("let users sign in with google, or with another by oidc; its secret is asked for")
    .option("--client-id <id>", "what the provider calls the app")
    .option("--issuer <url>", "of oidc: where its discovery begins")
    .option("--scope <scope>", "what to ask for besides openid and email; may be repeated", several)
    .option("--ca <path>", "PEM of the authority of its certificate, when that is not public")
    .example("auth providers set shop google --client-id 1234.apps.example")
    .does(async (context, app: string, provider: string, flags: ProviderFlags) => {
      if (flags.clientId === undefined) throw new UsageError("name the client by --client-id");
      const { id } = await appOf(context, app);
      const put = await context.client.auth.putProvider(id, provider, {
        client_id: flags.clientId,
        client_secret: await context.terminal.askSecret(`Secret of ${flags.clientId} at ${provider}`),
        ...given({ issuer_url: flags.issuer, scopes: flags.scope }),
        ...(flags.ca !== undefined && { ca_certificate: await readFile(flags.ca, "utf8") }),
      });
      context.output.show(put, providerColumns);
    });

  providers
    .command("delete <app> <provider>")
    .description("end one; its users sign in by mail from then on")
    .option("--yes", "do not ask")
    .example("auth providers delete shop google")
    .does(async (context, app: string, provider: string, { yes }: { yes?: boolean }) => {
      await context.confirm(`Delete the provider ${provider} of ${app}?`, yes);
      await context.client.auth.deleteProvider((await appOf(context, app)).id, provider);
      context.output.say(`${provider} is deleted`);
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
    .description("all of them, without their secrets")
    .example("auth clients list shop")
    .does(async (context, app: string) => {
      const found = await context.client.auth.clients((await appOf(context, app)).id);
      context.output.list(found.clients, clientColumns);
    });

  clients
    .command("create <app> <name>")
    .description("make one; the secret of a confidential one is shown this once")
    .option("--redirect <url>", "where sign-ins return to; may be repeated", several)
    .option("--confidential", "it keeps a secret, as a server does")
    .option("--without-pkce", "it cannot do PKCE, and sends a nonce")
    .example("auth clients create shop web --confidential --redirect https://shop.example/callback")
    .does(async (context, app: string, name: string, flags: ClientFlags) => {
      const { id } = await appOf(context, app);
      const client = await context.client.auth.createClient(id, {
        name,
        type: flags.confidential === true ? "confidential" : "public",
        redirect_uris: [...(flags.redirect ?? [])],
        ...(flags.withoutPkce === true && { require_pkce: false }),
      });
      context.output.show(client, clientColumns);
    });

  clients
    .command("rotate-secret <app> <client>")
    .description("another secret, shown this once; the one before is of no use from then on")
    .option("--yes", "do not ask")
    .example("auth clients rotate-secret shop 019a...")
    .does(async (context, app: string, client: string, { yes }: { yes?: boolean }) => {
      await context.confirm(
        `Give the client ${client} of ${app} another secret? It signs in with that one alone.`,
        yes,
      );
      const { id } = await appOf(context, app);
      context.output.show(await context.client.auth.rotateClientSecret(id, client), clientColumns);
    });

  clients
    .command("delete <app> <client>")
    .description("end one")
    .option("--yes", "do not ask")
    .example("auth clients delete shop 019a...")
    .does(async (context, app: string, client: string, { yes }: { yes?: boolean }) => {
      await context.confirm(`Delete the client ${client} of ${app}?`, yes);
      await context.client.auth.deleteClient((await appOf(context, app)).id, client);
      context.output.say(`${client} is deleted`);
    });
}

function addUsers(users: CliCommand): void {
  users
    .command("list <app>")
    .description("users, by id")
    .option("--email <address>", "the one with this address")
    .option("--limit <count>", "how many", wholeNumber, 50)
    .example("auth users list shop")
    .does(async (context, app: string, { email, limit }: { email?: string; limit: number }) => {
      const { id } = await appOf(context, app);
      const found = await take(context.client.auth.users(id, given({ email })), limit);
      context.output.list(found, ["id", "email", "email_verified", "last_sign_in_at"]);
    });

  users
    .command("create <app> <email>")
    .description("make one before the first sign-in")
    .example("auth users create shop me@example.com")
    .does(async (context, app: string, email: string) =>
      context.output.show(await context.client.auth.createUser((await appOf(context, app)).id, email)),
    );

  users
    .command("delete <app>")
    .description("leave nothing of one in any table")
    .option("--email <address>", "by address")
    .option("--id <id>", "by id")
    .option("--yes", "do not ask")
    .example("auth users delete shop --email me@example.com")
    .does(async (context, app: string, flags: { email?: string; id?: string; yes?: boolean }) => {
      if ((flags.email === undefined) === (flags.id === undefined))
        throw new UsageError("name one of --email and --id");
      const { id } = await appOf(context, app);
      await context.confirm(`Erase ${flags.email ?? flags.id ?? ""} from ${app} for good?`, flags.yes);
      const asked = await context.client.auth.eraseUser(id, flags.email, flags.id);
      context.output.show(await ended(context, asked));
    });
}

interface ClientFlags {
  readonly redirect?: readonly string[];
  readonly confidential?: boolean;
  readonly withoutPkce?: boolean;
}

function withSmtp(command: CliCommand): CliCommand {
  return command
    .option("--smtp <host:port>", "mail server; port 465, 587, 25 or 2525")
    .option("--smtp-user <name>", "its user; the password is asked for")
    .option("--smtp-ca <path>", "PEM of the authority of its certificate, when that is not public")
    .option("--from <address>", "what mails come from")
    .option("--from-name <name>", "the name beside it");
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
    await delay(pauseMs, undefined, { signal });
  }
}

async function ended({ client, signal }: Context, { task_id: taskId }: AuthTask): Promise<object> {
  for (;;) {
    const task = await client.tasks.get(taskId, { signal });
    if (task.status === "completed") return task.result as object;
    if (task.status === "failed") throw new UsageError(task.error?.message ?? "it failed");
    await delay(pauseMs, undefined, { signal });
  }
}
