import type { CliCommand } from "./command.ts";

/** The first word of a command, such as `services`. Its file is loaded only when it is used. */
export interface Noun {
  readonly name: string;
  /** The summary in `holdfast --help`. */
  readonly summary: string;
  /** Other names of the noun. */
  readonly aliases?: readonly string[];
  /** Loads the function that adds the noun's verbs or action. */
  load(): Promise<(noun: CliCommand) => void>;
}

/** A group of nouns in help. */
export interface NounGroup {
  readonly title: string;
  readonly nouns: readonly Noun[];
}

/** Every noun, in the order of the help. A new one is a file in nouns/ and a line here. */
// biome-ignore format: a table, aligned so that it reads as one
export const nounGroups: readonly NounGroup[] = [
  { title: "Databases", nouns: [
    { name: "services",   summary: "managed databases",                                load: async () => (await import("./nouns/services.ts")).addServices },
    { name: "nodes",      summary: "nodes of a service and their replication lag",     load: async () => (await import("./nouns/nodes.ts")).addNodes },
    { name: "users",      summary: "users of a database service",                      load: async () => (await import("./nouns/users.ts")).addUsers },
    { name: "databases",  summary: "databases of a service",                           load: async () => (await import("./nouns/databases.ts")).addDatabases },
    { name: "indices",    summary: "indices of a service",                             load: async () => (await import("./nouns/indices.ts")).addIndices },
    { name: "topics",     summary: "topics of a service",                              load: async () => (await import("./nouns/topics.ts")).addTopics },
    { name: "groups",     summary: "consumer groups of a service",                     load: async () => (await import("./nouns/groups.ts")).addGroups },
    { name: "backups",    summary: "backups of a service",                             load: async () => (await import("./nouns/backups.ts")).addBackups },
    { name: "queues",     summary: "queues of a service and their messages",           load: async () => (await import("./nouns/queues.ts")).addQueues },
    { name: "config",     summary: "parameters of a service's engine",                 load: async () => (await import("./nouns/config.ts")).addConfig },
    { name: "operations", summary: "operations: changes that take time",               load: async () => (await import("./nouns/operations.ts")).addOperations },
    { name: "tasks",      summary: "results of requests that take longer",             load: async () => (await import("./nouns/tasks.ts")).addTasks },
    { name: "metrics",    summary: "show charts of a service's metrics",                     load: async () => (await import("./nouns/metrics.ts")).addMetrics },
    { name: "health",     summary: "show the health of a service, now and in the past",         load: async () => (await import("./nouns/health.ts")).addHealth },
    { name: "queries",    summary: "statistics of queries, and running sessions",      load: async () => (await import("./nouns/queries.ts")).addQueries },
    { name: "query",      summary: "run one read-only SQL statement",                  load: async () => (await import("./nouns/query.ts")).addQuery },
    { name: "tsql",       summary: "assess T-SQL scripts, and list unsupported features",  load: async () => (await import("./nouns/tsql.ts")).addTsql },
    { name: "catalog",    summary: "show engines, plans, storage tiers and prices",               load: async () => (await import("./nouns/catalog.ts")).addCatalog },
  ] },
  { title: "Files", nouns: [
    { name: "files",      summary: "object storage with the S3 API, and its keys",     load: async () => (await import("./nouns/files.ts")).addFiles },
  ] },
  { title: "Models", nouns: [
    { name: "inference",  summary: "language models behind one endpoint",              load: async () => (await import("./nouns/inference.ts")).addInference },
  ] },
  { title: "Apps", nouns: [
    { name: "apps",       summary: "apps and their attached databases",                load: async () => (await import("./nouns/apps.ts")).addApps },
    { name: "auth",       summary: "sign-in for an app: its issuer, keys and users",    load: async () => (await import("./nouns/auth.ts")).addAuth },
  ] },
  { title: "Bundles", nouns: [
    { name: "projects",   summary: "resources described in one document",              load: async () => (await import("./nouns/projects.ts")).addProjects },
    { name: "stacks",     summary: "resources launched from a template at a fixed cost",load: async () => (await import("./nouns/stacks.ts")).addStacks },
    { name: "pipelines",  summary: "database services created together",               load: async () => (await import("./nouns/pipelines.ts")).addPipelines },
  ] },
  { title: "Monitoring", nouns: [
    { name: "events",     summary: "show events of the organization",                       load: async () => (await import("./nouns/events.ts")).addEvents },
    { name: "alerts",     summary: "alert rules on metrics, and firing alerts",        load: async () => (await import("./nouns/alerts.ts")).addAlerts },
    { name: "channels",   summary: "notification channels of alerts",                  load: async () => (await import("./nouns/channels.ts")).addChannels },
    { name: "webhooks",   summary: "endpoints that receive events",                    load: async () => (await import("./nouns/webhooks.ts")).addWebhooks },
    { name: "exports",    summary: "exports of metrics and logs",                      load: async () => (await import("./nouns/exports.ts")).addExports },
    { name: "audit",      summary: "show the audit log: who changed what",                      load: async () => (await import("./nouns/audit.ts")).addAudit },
  ] },
  { title: "Access", nouns: [
    { name: "orgs",       summary: "your organizations",                               load: async () => (await import("./nouns/orgs.ts")).addOrgs },
    { name: "members",    summary: "members of the organization",                      load: async () => (await import("./nouns/members.ts")).addMembers },
    { name: "keys",       summary: "API keys of the organization",                     load: async () => (await import("./nouns/keys.ts")).addKeys },
    { name: "tokens",     summary: "bearer tokens, which expire",                      load: async () => (await import("./nouns/tokens.ts")).addTokens },
  ] },
  { title: "You", nouns: [
    { name: "login",      summary: "sign in, and store the session in a profile",      load: async () => (await import("./nouns/login.ts")).addLogin },
    { name: "console",    summary: "open the console in your browser, signed in",     load: async () => (await import("./nouns/console.ts")).addConsole },
    { name: "sessions",   summary: "your sessions in browsers",                        load: async () => (await import("./nouns/sessions.ts")).addSessions },
    { name: "logout",     summary: "end the session of a profile",                     load: async () => (await import("./nouns/logout.ts")).addLogout },
    { name: "status",     summary: "show the installation and its services",                load: async () => (await import("./nouns/status.ts")).addStatus },
    { name: "version",    summary: "print the version of this program",                          load: async () => (await import("./nouns/version.ts")).addVersion },
    { name: "me",         summary: "show who you are signed in as: user, organization and scopes",        aliases: ["whoami"], load: async () => (await import("./nouns/me.ts")).addMe },
    { name: "password",   summary: "change your password",                             load: async () => (await import("./nouns/password.ts")).addPassword },
    { name: "profile",    summary: "stored installations and sessions",                load: async () => (await import("./nouns/profile.ts")).addProfile },
    { name: "completion", summary: "print a script for completion in your shell",              load: async () => (await import("./nouns/completion.ts")).addCompletion },
  ] },
  { title: "Platform", nouns: [
    { name: "controllers", summary: "hosts of an installation with several controllers", load: async () => (await import("./nouns/controllers.ts")).addControllers },
    { name: "admin",      summary: "administration, for platform operators", load: async () => (await import("./nouns/admin.ts")).addAdmin },
  ] },
];

export const nouns: readonly Noun[] = nounGroups.flatMap((group) => group.nouns);
