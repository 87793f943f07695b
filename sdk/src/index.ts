export { type Client, createClient } from "./client.ts";
export type { Access } from "./access.ts";
export type * from "./access-types.ts";
export * from "./errors.ts";
export type { ServiceFilter, Services, Verb } from "./services.ts";
export type { Credentials, TransportOptions } from "./transport.ts";
export type * from "./types.ts";
export { ServiceFailed, type WaitOptions, WaitTimedOut, waitFor } from "./wait.ts";
