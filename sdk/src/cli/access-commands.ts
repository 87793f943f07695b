import type { Command } from "commander";
import type { Role } from "../access-types.ts";
import type { Client } from "../client.ts";
import { type CliDeps, type Context, openContext } from "./context.ts";
import { UsageError } from "./exit-code.ts";
import { given, several, wholeNumber } from "./flag-values.ts";

const organizationColumns = ["id", "name", "usage", "quota", "created_at"];
const memberColumns = ["user_id", "role", "created_at"];
const keyColumns = ["id", "name", "scopes", "expires_at", "last_used_at", "last_used_from"];
const tokenColumns = ["id", "scopes", "resources", "expires_at", "created_by", "last_used_at", "last_used_from"];
const auditColumns = ["time", "actor", "source", "action", "object_kind", "object_id", "result"];

/** Organizations, members, keys, tokens and the audit log. */
export function addAccessCommands(program: Command, deps: CliDeps): void {
  const run = (work: (context: Context) => Promise<void>, command: Command) => work(openContext(command, deps));

  program
    .command("me")
    .description("who asks, where and with which rights")
    .action((_flags: object, command: Command) =>
      run(async ({ client, output }) => output.show(await client.me()), command),
    );

  addOrganizations(program, deps);
  addMembers(program, deps);
  addKeys(program, deps);
  addTokens(program, deps);

  program
    .command("audit")
    .description("who did what, newest first")
    .option("--actor <actor>", "such as user:anna or api_key:hfk_...")
    .option("--object <id>", "about one object")
    .option("--action <action>", "such as managed-service.create")
    .option("--since <time>", "RFC 3339")
    .option("--until <time>", "RFC 3339")
    .option("--limit <count>", "at most so many", wholeNumber, 100)
    .action(({ limit, ...filter }: { limit: number } & Record<string, string>, command: Command) =>
      run(async ({ client, output }) => {
        const picked = ["actor", "object", "action", "since", "until"].map((name) => [name, filter[name]]);
        output.list(await take(client.auditLog(Object.fromEntries(picked)), limit), auditColumns);
      }, command),
    );
}

function addOrganizations(program: Command, deps: CliDeps): void {
  const orgs = program.command("orgs").description("organizations that you belong to");
  orgs
    .command("list")
    .description("all of them")
    .action(async (_flags: object, command: Command) => {
      const { settings, client, operator, output } = openContext(command, deps);
      // A key knows its own organization only; the person of the local installation knows all of theirs.
      const asked = settings.dataDirectory === undefined ? client : operator;
      output.list(await take(asked.organizations.list()), organizationColumns);
    });
  orgs
    .command("create <name>")
    .description("make one; you are its owner")
    .action(async (name: string, _flags: object, command: Command) => {
      const { operator, output } = openContext(command, deps);
      const made = await operator.organizations.create(name);
      output.show(made, organizationColumns);
      output.say(`\nTo act in it: --organization ${made.id}, or HOLDFAST_ORGANIZATION`);
    });
  orgs
    .command("rename <name>")
    .description("give the organization another name")
    .action(async (name: string, _flags: object, command: Command) => {
      const { client, output } = openContext(command, deps);
      output.show(await client.organizations.rename(await organizationOf(client), name), organizationColumns);
    });
  orgs
    .command("delete <id>")
    .description("delete an organization without services, with its keys and tokens")
    .option("--yes", "do not ask")
    .action(async (id: string, { yes }: { yes?: boolean }, command: Command) => {
      const { client, output } = openContext(command, deps);
      if (yes !== true && !(await deps.confirm(`Delete organization ${id} with its keys and tokens?`)))
        throw new UsageError("not deleted; --yes skips the question");
      await client.organizations.delete(id);
      output.say(`${id} is deleted`);
    });
}

function addMembers(program: Command, deps: CliDeps): void {
  const members = program.command("members").description("people of the organization");
  members
    .command("list")
    .description("all of them")
    .action(async (_flags: object, command: Command) => {
      const { client, output } = openContext(command, deps);
      output.list(await take(client.members.list(await organizationOf(client))), memberColumns);
    });
  members
    .command("invite <user>")
    .description("make a person and a member of them; the setup token, shown this once, is for them to set a password")
    .option("--role <role>", "viewer, developer, admin or owner", "viewer")
    .action(async (user: string, { role }: { role: Role }, command: Command) => {
      const { client, output } = openContext(command, deps);
      const made = await client.users.create(user);
      output.show({ ...made, ...(await client.members.add(await organizationOf(client), user, role)) });
    });
  members
    .command("add <user>")
    .description("make a person whom you know a member")
    .option("--role <role>", "viewer, developer, admin or owner", "viewer")
    .action(async (user: string, { role }: { role: Role }, command: Command) => {
      const { client, output } = openContext(command, deps);
      output.show(await client.members.add(await organizationOf(client), user, role), memberColumns);
    });
  members
    .command("set-role <user> <role>")
    .description("viewer, developer, admin or owner")
    .action(async (user: string, role: Role, _flags: object, command: Command) => {
      const { client, output } = openContext(command, deps);
      output.show(await client.members.update(await organizationOf(client), user, role), memberColumns);
    });
  members
    .command("remove <user>")
    .description("end a membership, and the tokens that the member made")
    .action(async (user: string, _flags: object, command: Command) => {
      const { client, output } = openContext(command, deps);
      await client.members.remove(await organizationOf(client), user);
      output.say(`${user} is no member any more`);
    });
}

function addKeys(program: Command, deps: CliDeps): void {
  const keys = program.command("keys").description("API keys of the organization");
  keys
    .command("list")
    .description("all of them, without their secrets")
    .action(async (_flags: object, command: Command) => {
      const { client, output } = openContext(command, deps);
      output.list(await take(client.apiKeys.list()), keyColumns);
    });
  keys
    .command("create <name>")
    .description("make a key; its secret is shown this once")
    .requiredOption("--scope <scope>", "such as services:read (repeat)", several)
    .option("--expires-at <time>", "RFC 3339")
    .action(async (name: string, flags: { scope: string[]; expiresAt?: string }, command: Command) => {
      const { client, output } = openContext(command, deps);
      output.show(
        await client.apiKeys.create({ name, scopes: flags.scope, ...given({ expires_at: flags.expiresAt }) }),
      );
    });
  keys
    .command("rotate <id>")
    .description("give a key a new secret, shown this once")
    .option("--overlap-hours <hours>", "how long the old one works on", wholeNumber, 0)
    .action(async (id: string, { overlapHours }: { overlapHours: number }, command: Command) => {
      const { client, output } = openContext(command, deps);
      output.show(await client.apiKeys.rotate(id, overlapHours));
    });
  keys
    .command("delete <id>")
    .description("end a key at once")
    .action(async (id: string, _flags: object, command: Command) => {
      const { client, output } = openContext(command, deps);
      await client.apiKeys.delete(id);
      output.say(`${id} is deleted`);
    });
}

function addTokens(program: Command, deps: CliDeps): void {
  const tokens = program.command("tokens").description("bearer tokens");
  tokens
    .command("list")
    .description("all of them")
    .action(async (_flags: object, command: Command) => {
      const { client, output } = openContext(command, deps);
      output.list(await take(client.tokens.list()), tokenColumns);
    });
  tokens
    .command("create")
    .description("make a token; it is shown this once")
    .requiredOption("--scope <scope>", "such as services:read (repeat)", several)
    .option("--ttl <seconds>", "how long it lives", wholeNumber, 3_600)
    .option("--service <service>", "limit it to a service (repeat)", several)
    .action(async (flags: { scope: string[]; ttl: number; service?: string[] }, command: Command) => {
      const context = openContext(command, deps);
      const found = await Promise.all((flags.service ?? []).map((name) => context.service(name)));
      const resources = found.map(({ id }) => ({ kind: "managed-service", id }) as const);
      context.output.show(
        await context.client.tokens.create({ scopes: flags.scope, ttl_seconds: flags.ttl, resources }),
      );
    });
  tokens
    .command("delete <id>")
    .description("end a token at once")
    .action(async (id: string, _flags: object, command: Command) => {
      const { client, output } = openContext(command, deps);
      await client.tokens.delete(id);
      output.say(`${id} is deleted`);
    });
}

/** The organization that the credential acts in. */
async function organizationOf(client: Client): Promise<string> {
  const { organization_id: id } = await client.me();
  if (id === null) throw new UsageError("name the organization: --organization, or HOLDFAST_ORGANIZATION");
  return id;
}

async function take<T>(items: AsyncIterable<T>, limit = Infinity): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) {
    taken.push(item);
    if (taken.length >= limit) break;
  }
  return taken;
}
