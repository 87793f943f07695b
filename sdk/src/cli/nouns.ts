import type { CliCommand } from "./command.ts";

/** The first word of a command line. Its file is loaded only when it is used. */
export interface Noun {
  readonly name: string;
  /** Its line in `holdfast --help`. */
  readonly summary: string;
  /** Adds its verbs, or its own action. */
  load(): Promise<(noun: CliCommand) => void>;
}

/** Nouns that stand together in help. */
export interface NounGroup {
  readonly title: string;
  readonly nouns: readonly Noun[];
}

/** Every noun, in the order of the help. A new one is a file in nouns/ and a line here. */
// biome-ignore format: a table, aligned so that it reads as one
export const nounGroups: readonly NounGroup[] = [
  { title: "Databases", nouns: [
    { name: "services",   summary: "managed databases",                                load: async () => (await import("./nouns/services.ts")).addServices },
    { name: "nodes",      summary: "nodes of a service, and how far replicas are",     load: async () => (await import("./nouns/nodes.ts")).addNodes },
    { name: "users",      summary: "users of a database service",                      load: async () => (await import("./nouns/users.ts")).addUsers },
    { name: "databases",  summary: "databases of a service",                           load: async () => (await import("./nouns/databases.ts")).addDatabases },
    { name: "backups",    summary: "backups of a service",                             load: async () => (await import("./nouns/backups.ts")).addBackups },
    { name: "queues",     summary: "queues of a service and their messages",           load: async () => (await import("./nouns/queues.ts")).addQueues },
    { name: "config",     summary: "parameters of a service's engine",                 load: async () => (await import("./nouns/config.ts")).addConfig },
    { name: "operations", summary: "one thing that takes time, and its end",            load: async () => (await import("./nouns/operations.ts")).addOperations },
    { name: "tasks",      summary: "requests that are answered later",                 load: async () => (await import("./nouns/tasks.ts")).addTasks },
    { name: "metrics",    summary: "charts of what a service's machines do",            load: async () => (await import("./nouns/metrics.ts")).addMetrics },
    { name: "health",     summary: "what a service's checks say, and said",            load: async () => (await import("./nouns/health.ts")).addHealth },
    { name: "queries",    summary: "what queries cost, and which run now",             load: async () => (await import("./nouns/queries.ts")).addQueries },
    { name: "query",      summary: "run one statement that only reads",                load: async () => (await import("./nouns/query.ts")).addQuery },
    { name: "catalog",    summary: "engines, plans, storage and prices",               load: async () => (await import("./nouns/catalog.ts")).addCatalog },
  ] },
  { title: "Models", nouns: [
    { name: "inference",  summary: "models of other providers behind one endpoint",    load: async () => (await import("./nouns/inference.ts")).addInference },
  ] },
  { title: "Apps", nouns: [
    { name: "apps",       summary: "apps, and the databases that they use",             load: async () => (await import("./nouns/apps.ts")).addApps },
    { name: "auth",       summary: "sign-in for an app: its issuer, keys and users",    load: async () => (await import("./nouns/auth.ts")).addAuth },
  ] },
  { title: "Together", nouns: [
    { name: "projects",   summary: "resources that are described in one document",     load: async () => (await import("./nouns/projects.ts")).addProjects },
    { name: "stacks",     summary: "templates, launched at a cost that you accept",    load: async () => (await import("./nouns/stacks.ts")).addStacks },
    { name: "pipelines",  summary: "database services that work together",             load: async () => (await import("./nouns/pipelines.ts")).addPipelines },
  ] },
  { title: "What happens", nouns: [
    { name: "events",     summary: "what happened to the organization's objects",      load: async () => (await import("./nouns/events.ts")).addEvents },
    { name: "alerts",     summary: "rules on metrics, and what fires",                 load: async () => (await import("./nouns/alerts.ts")).addAlerts },
    { name: "channels",   summary: "where alerts are sent",                            load: async () => (await import("./nouns/channels.ts")).addChannels },
    { name: "webhooks",   summary: "endpoints that get events as signed requests",     load: async () => (await import("./nouns/webhooks.ts")).addWebhooks },
    { name: "exports",    summary: "metrics and logs, pushed to where you look",       load: async () => (await import("./nouns/exports.ts")).addExports },
    { name: "audit",      summary: "who did what",                                     load: async () => (await import("./nouns/audit.ts")).addAudit },
  ] },
  { title: "Access", nouns: [
    { name: "orgs",       summary: "organizations that you belong to",                 load: async () => (await import("./nouns/orgs.ts")).addOrgs },
    { name: "members",    summary: "people of the organization",                       load: async () => (await import("./nouns/members.ts")).addMembers },
    { name: "keys",       summary: "API keys of the organization",                     load: async () => (await import("./nouns/keys.ts")).addKeys },
    { name: "tokens",     summary: "bearer tokens, which end by themselves",           load: async () => (await import("./nouns/tokens.ts")).addTokens },
  ] },
  { title: "You", nouns: [
    { name: "login",      summary: "sign in, and keep the session in a profile",       load: async () => (await import("./nouns/login.ts")).addLogin },
    { name: "logout",     summary: "end the session of a profile",                     load: async () => (await import("./nouns/logout.ts")).addLogout },
    { name: "me",         summary: "who asks, where and with which rights",            load: async () => (await import("./nouns/me.ts")).addMe },
    { name: "password",   summary: "change your password",                             load: async () => (await import("./nouns/password.ts")).addPassword },
    { name: "profile",    summary: "installations and sessions that are kept",         load: async () => (await import("./nouns/profile.ts")).addProfile },
    { name: "completion", summary: "what makes your shell complete commands",          load: async () => (await import("./nouns/completion.ts")).addCompletion },
  ] },
  { title: "Platform", nouns: [
    { name: "admin",      summary: "machines, controllers, organizations: for platform operators", load: async () => (await import("./nouns/admin.ts")).addAdmin },
  ] },
];

export const nouns: readonly Noun[] = nounGroups.flatMap((group) => group.nouns);
