import type { CliCommand } from "./command.ts";

/** What a command line begins with. Its file is read only when it is asked for. */
export interface Noun {
  readonly name: string;
  /** Its line in `holdfast --help`. */
  readonly summary: string;
  /** Adds its verbs, or what it does itself. */
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
    { name: "users",      summary: "users of a database service",                      load: async () => (await import("./nouns/users.ts")).addUsers },
    { name: "databases",  summary: "databases of a service",                           load: async () => (await import("./nouns/databases.ts")).addDatabases },
    { name: "config",     summary: "parameters of a service's engine",                 load: async () => (await import("./nouns/config.ts")).addConfig },
    { name: "operations", summary: "one thing that takes time, and its end",            load: async () => (await import("./nouns/operations.ts")).addOperations },
    { name: "metrics",    summary: "charts of what a service's machines do",            load: async () => (await import("./nouns/metrics.ts")).addMetrics },
    { name: "catalog",    summary: "engines, plans, storage and prices",               load: async () => (await import("./nouns/catalog.ts")).addCatalog },
  ] },
  { title: "What happens", nouns: [
    { name: "events",     summary: "what happened to the organization's objects",      load: async () => (await import("./nouns/events.ts")).addEvents },
    { name: "webhooks",   summary: "endpoints that get events as signed requests",     load: async () => (await import("./nouns/webhooks.ts")).addWebhooks },
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
