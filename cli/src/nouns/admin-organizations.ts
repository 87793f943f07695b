import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { UsageError } from "../exit-code.ts";
import { omitUndefined, collect, collectPairs, integer, timeOrDelay } from "../flag-values.ts";

const maxEntries = 1_000;
const service = "OrganizationService";
const organizations: AdminList = {
  service,
  method: "ListOrganizations",
  plural: "organizations",
  columns: ["id", "name", "quota", "createdAt"],
};
const apiKeys: AdminList = {
  service,
  method: "ListApiKeys",
  plural: "apiKeys",
  columns: ["id", "name", "organizationId", "scopes", "expiresAt", "createdAt"],
};

export function addAdminOrganizations(admin: CliCommand): void {
  const orgs = admin.command("orgs").description("organizations");
  orgs
    .command("list")
    .description("list all organizations")
    .example("admin orgs list")
    .does((context) => showAdminList(context, organizations, {}, maxEntries));
  orgs
    .command("create <name>")
    .description("create an organization")
    .option("--services <count>", "maximum number of services", integer)
    .example("admin orgs create acme --services 20")
    .does(async ({ passwordClient, output }, name: string, { services }: { services?: number }) => {
      const quota = services === undefined ? {} : { quota: { services } };
      const created = await (await passwordClient()).admin<object>(service, "CreateOrganization", { name, ...quota });
      output.show(created, organizations.columns);
    });
  addQuota(orgs);
}

/** Names of quotas in flags: `--members 10` sets a quota, `--no-members` removes it. */
const quotaNames = [
  "services",
  "storage-gb",
  "members",
  "api-keys",
  "tokens",
  "webhooks",
  "projects",
  "stacks",
  "pipelines",
] as const;

/** Collects pairs of a name and a count. */
function collectCounts(text: string, before: Readonly<Record<string, number>> = {}): Record<string, number> {
  const counts = Object.entries(collectPairs(text)).map(([name, count]) => [name, integer(count)] as const);
  return { ...before, ...Object.fromEntries(counts) };
}

type QuotaFlags = { readonly [name in string]?: number | false } & {
  readonly set?: Record<string, number>;
  readonly reset?: string[];
};

function addQuota(orgs: CliCommand): void {
  const quota = orgs.command("quota <organization>").description("set quotas of an organization");
  for (const name of quotaNames) {
    quota
      .option(`--${name} <count>`, `quota of ${name}`, integer)
      .option(`--no-${name}`, `use the default quota of ${name}`);
  }
  quota
    .option("--set <name=count>", "any quota by its name, which orgs get lists (repeatable)", collectCounts)
    .option("--reset <name>", "use the default of a quota by its name (repeatable)", collect)
    .example("admin orgs quota 019a... --services 200 --storage-gb 4096")
    .example("admin orgs quota 019a... --no-services")
    .example("admin orgs quota 019a... --set inference_keys=2000 --reset apps")
    .does(async ({ passwordClient, output }, organizationId: string, flags: QuotaFlags) => {
      const { set: limits, reset: defaults, ...named } = flags;
      const byName = omitUndefined({ limits, defaults });
      const mask = [...Object.keys(named), ...Object.keys(byName)];
      if (mask.length === 0)
        throw new UsageError(
          `name a quota to set: --set <name=count>, ${quotaNames.map((each) => `--${each}`).join(", ")}`,
        );
      const counts = Object.fromEntries(Object.entries(named).filter(([, count]) => count !== false));
      const request = { organizationId, ...counts, ...byName, updateMask: mask.join(",") };
      output.show(await (await passwordClient()).admin<object>(service, "UpdateQuota", request));
    });
}

interface KeyFlags {
  readonly scope?: string[];
  readonly expiresAt?: string;
}

export function addAdminKeys(admin: CliCommand): void {
  const keys = admin.command("keys").description("API keys of organizations");
  keys
    .command("list")
    .description("list all keys, without their secrets")
    .option("--of <organization>", "only keys of this organization")
    .example("admin keys list")
    .does((context, { of }: { of?: string }) =>
      showAdminList(context, apiKeys, omitUndefined({ organizationId: of }), maxEntries),
    );
  keys
    .command("create <organization> <name>")
    .description("create a key; its secret is shown only once")
    .option("--scope <scope>", "scope, such as services:read (repeatable); all scopes of an owner by default", collect)
    .option(
      "--expires-at <time>",
      "expiry time: RFC 3339, or a time from now such as 30d; none by default",
      timeOrDelay,
    )
    .example("admin keys create 019a... first")
    .does(async ({ passwordClient, output }, organizationId: string, name: string, { scope, expiresAt }: KeyFlags) => {
      const request = { organizationId, name, ...omitUndefined({ scopes: scope, expiresAt }) };
      const { apiKey, secret } = await (await passwordClient()).admin<{ apiKey: object; secret: string }>(
        service,
        "CreateApiKey",
        request,
      );
      output.show({ ...apiKey, secret });
    });
  keys
    .command("revoke <key>")
    .description("revoke a key immediately")
    .option("--yes", "do not ask for confirmation")
    .example("admin keys revoke hfk_...")
    .does(async ({ passwordClient, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Revoke the key ${id}? Its calls are refused immediately.`, yes);
      await (await passwordClient()).admin(service, "RevokeApiKey", { id });
      output.info(`${id} is revoked`);
    });
}
