import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { hours } from "../flag-values.ts";
import { saveSession, type Session } from "../profiles.ts";

interface LoginFlags {
  readonly username?: string;
  readonly setUp?: boolean;
  readonly apiKey?: string;
  readonly token?: boolean;
  readonly ttlHours: number;
}

export function addLogin(login: CliCommand): void {
  login
    .option("--username <name>", "your user name; asked for by default")
    .option("--set-up", "set your first password with a setup token")
    .option("--api-key <id>", "store an API key instead of a session; asks for its secret")
    .option("--token", "store an existing token instead of a session; asks for it")
    .option("--ttl-hours <hours>", "lifetime of the session, such as 12 or 7d", hours, 12)
    .excludes("--api-key", "--token", "--username", "--set-up", "--ttl-hours")
    .excludes("--token", "--username", "--set-up", "--ttl-hours")
    .example("login")
    .example("login --base-url https://holdfast.example.com --ca-file ca.pem --profile work")
    .example("login --username anna < password.txt")
    .example("login --api-key hfk_... --profile reports")
    .does(signIn, { createsProfile: true });
}

async function signIn(context: Context, flags: LoginFlags): Promise<void> {
  const session = await open(context, flags);
  const name = saveSession(context, session);
  context.note(`${describe(session)}; profile ${name} is in use`);
  if (session.username !== undefined && session.token === undefined)
    context.note(`You have no organization yet: run ${context.program} orgs create NAME, then log in again.`);
}

async function open(context: Context, flags: LoginFlags): Promise<Session> {
  const { terminal } = context;
  if (flags.apiKey !== undefined) {
    const secret = await terminal.askSecret(`Secret of ${flags.apiKey}`);
    await context.clientOf({ kind: "basic", name: flags.apiKey, secret }).me();
    return { api_key_id: flags.apiKey, api_key_secret: secret };
  }
  if (flags.token === true) {
    const token = await terminal.askSecret("Token");
    await context.clientOf({ kind: "bearer", token }).me();
    return { token };
  }
  const username = flags.username ?? (await terminal.ask("User name"));
  return openSession(context, username, await passwordOf(context, flags), flags.ttlHours * 3_600);
}

async function passwordOf(context: Context, { setUp }: LoginFlags): Promise<string> {
  const { terminal } = context;
  if (setUp !== true) return terminal.askSecret("Password");
  const token = await terminal.askSecret("Setup token");
  const password = await askNewPassword(context);
  await context.clientOf(undefined).users.setUp(token, password);
  return password;
}

/** Asks for a new password twice, without echo. */
export async function askNewPassword({ terminal }: Context): Promise<string> {
  const password = await terminal.askSecret("New password");
  if (terminal.isInteractive && (await terminal.askSecret("New password again")) !== password)
    throw new UsageError("the passwords differ");
  return password;
}

/** Creates a token with all scopes of the user in the organization; the password is not stored. */
async function openSession(context: Context, username: string, password: string, seconds: number): Promise<Session> {
  const credentials = { kind: "basic", name: username, secret: password } as const;
  const named = context.flags.organization ?? (context.environment.HOLDFAST_ORGANIZATION || undefined);
  const { organization_id: acting, organizations } = await context.clientOf(credentials, named).me();
  const organization = acting ?? (await choose(context, organizations));
  if (organization === undefined) return { username };
  const client = context.clientOf(credentials, organization);
  const scopes = (await client.me()).scopes.filter((scope) => !scope.startsWith("platform:"));
  const { token } = await client.tokens.create({ scopes, ttl_seconds: seconds });
  return { username, organization, token };
}

async function choose(
  { terminal, note }: Context,
  organizations: readonly { readonly id: string; readonly name: string }[],
): Promise<string | undefined> {
  if (organizations.length === 0) return undefined;
  const all = organizations.map(({ id, name }) => `  ${id}  ${name}`).join("\n");
  if (!terminal.isInteractive) throw new UsageError(`choose one of your organizations with --organization:\n${all}`);
  note(all);
  const answer = await terminal.ask("Organization (id or name)");
  const found = organizations.find(({ id, name }) => id === answer || name === answer);
  if (found === undefined) throw new UsageError(`${answer} is not one of them`);
  return found.id;
}

function describe({ username, organization, api_key_id: key }: Session): string {
  if (key !== undefined) return `the key ${key} is stored`;
  if (username === undefined) return "the token is stored";
  return `signed in as ${username}${organization === undefined ? "" : ` in ${organization}`}`;
}
