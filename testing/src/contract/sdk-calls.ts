import type { DescMessage, DescService } from "@bufbuild/protobuf";
import type * as sdk from "@holdfast/sdk/index.ts";
import type { RestEntry, RestShape } from "../api/rest-types.ts";

export type * as sdk from "@holdfast/sdk/index.ts";

/** Calls of a client by full name of the method; `Wrong` is the union of methods whose responses differ. */
export interface SdkCalls<Wrong = never> {
  readonly calls: Readonly<Record<string, (client: sdk.Client) => unknown>>;
  readonly wrong: readonly Wrong[];
}

/**
 * Each method of a service as the SDK calls it, by the names of its handlers. A contract with a response type that
 * differs from the protos does not compile; the error names the method.
 */
export function sdkCalls<
  S extends DescService,
  const C extends { readonly [K in keyof S["method"]]?: (client: sdk.Client) => unknown },
>(service: S, calls: C): SdkCalls<WrongCalls<S, C>> {
  const entries = Object.entries(calls as SdkCalls["calls"]);
  const named = entries.map(([name, call]) => [`${service.typeName}.${service.method[name]?.name ?? name}`, call]);
  return { calls: Object.fromEntries(named) as SdkCalls["calls"], wrong: [] };
}

type WrongCalls<S extends DescService, C> = {
  [K in keyof C]: K extends keyof S["method"]
    ? C[K] extends (client: sdk.Client) => infer Answer
      ? Same<Awaited<Answer>, S["method"][K]["output"]> extends true
        ? never
        : K
      : K
    : K;
}[keyof C];

/** Compiles if every member is `true`; the error names the member that is not. */
export function sameInputs<_ extends { readonly [K in keyof _]: true }>(): true {
  return true;
}

/** `true` if the type is between both. */
export type Mutual<A, Widest, Narrowest> = [A] extends [Widest] ? ([Narrowest] extends [A] ? true : false) : false;

/** A client's type equals the message: no less with each sub-message present, and no more with any of them null. */
type Same<A, Schema extends DescMessage> =
  A extends sdk.List<sdk.PlatformEvent>
    ? SameEvent<Schema>
    : A extends sdk.List<infer Entry>
      ? Mutual<Entry, RestEntry<Schema>, RestEntry<Schema, never>>
      : A extends readonly (infer Entry)[]
        ? Mutual<Entry, RestEntry<Schema>, RestEntry<Schema, never>>
        : [A] extends [void]
          ? Schema["typeName"] extends "google.protobuf.Empty"
            ? true
            : false
          : Mutual<A, RestShape<Schema>, RestShape<Schema, never>>;

/** An event has the message's members, and by its type the data that the platform's own catalog declares. */
type SameEvent<Schema extends DescMessage> = [sdk.PlatformEvent] extends [RestEntry<Schema>]
  ? Mutual<keyof sdk.PlatformEvent, keyof RestEntry<Schema>, keyof RestEntry<Schema>>
  : false;

/** Members of the path and of paging, and members that only gRPC has. */
type Elsewhere = "id" | "org_id" | "rule_id" | "service_id" | "update_mask" | "limit" | "cursor" | "follow";
type RequestOf<Schema extends DescMessage> = Omit<RestShape<Schema, never>, Elsewhere>;
type Given<Input> = { [K in keyof Input]-?: Exclude<Input[K], undefined | null> };

/** Names and types of a request's members; whether they are optional or nullable is written by hand. */
export type SameInput<Input, Schema extends DescMessage> = Mutual<
  Given<Input>,
  Given<RequestOf<Schema>>,
  Given<RequestOf<Schema>>
>;

/** Page of a list, and time, as SDK calls have them. */
export const page = { limit: 7, cursor: "c" };
export const time = "2026-03-01T12:00:00Z";
