import type { DescMessage, MessageJsonType, MessageShape } from "@bufbuild/protobuf";

/**
 * REST form of a message, by the generated types: names in snake_case, times as texts, enumerations in their own
 * spelling, every member present. Clients' types are compared with it.
 */
export type RestShape<Schema extends DescMessage, Empty = null> = Shape<
  MessageShape<Schema>,
  MessageJsonType<Schema>,
  Empty
>;

/** The entries of a list method's response. */
export type RestEntry<Schema extends DescMessage, Empty = null> = {
  [K in keyof RestShape<Schema, Empty>]: RestShape<Schema, Empty>[K] extends readonly (infer E)[] ? E : never;
}[keyof RestShape<Schema, Empty>];

/**
 * Members that the documentation specifies more precisely than the protos, by message: all values of a string, the
 * content of a JSON text. Contracts add members of their messages.
 */
export interface KnownTexts {}

type Named = { readonly $typeName: string };
type Field<M> = Exclude<keyof M, "$typeName" | "$unknown"> & string;

/** `Empty` is the type of an absent message: null, or never where all messages are assumed present. */
type Shape<M, J, Empty> = {
  readonly [K in Field<M> as Snake<K>]: [Known<M, K>] extends [never[]]
    ? Value<NonNullable<M[K]>, J extends { [key in K]?: infer V } ? V : never, Empty> | Absent<M, K, Empty>
    : Known<M, K>;
};

type Known<M, K> = M extends { readonly $typeName: infer T extends keyof KnownTexts }
  ? K extends keyof KnownTexts[T]
    ? KnownTexts[T][K]
    : never[]
  : never[];

/** Scalars declare by `optional` that they may be null; messages do not. */
type Absent<M, K extends keyof M, Empty> = undefined extends M[K]
  ? NonNullable<M[K]> extends Named | object
    ? Empty
    : null
  : never;

type Value<M, J, Empty> = M extends Uint8Array // of raw_json
  ? unknown
  : M extends { readonly $typeName: "google.protobuf.Timestamp" }
    ? string
    : M extends { readonly $typeName: "google.protobuf.Value" }
      ? string | null
      : M extends { readonly $typeName: `holdfast.v1.${string}List` }
        ? readonly string[]
        : M extends { readonly $typeName: "google.protobuf.ListValue" }
          ? readonly [number, number, number, number]
          : M extends Named
            ? Shape<M, J, Empty>
            : M extends readonly (infer E)[]
              ? readonly Value<E, J extends readonly (infer F)[] ? F : never, Empty>[]
              : M extends number
                ? EnumOr<number, J>
                : M extends bigint
                  ? number
                  : M extends string | boolean
                    ? M
                    : M extends Readonly<Record<string, infer E>>
                      ? E extends Named
                        ? Readonly<Record<string, Value<E, J extends Record<string, infer F> ? F : never, Empty>>>
                        : E extends string
                          ? Readonly<Record<string, string>>
                          : E extends number
                            ? Readonly<Record<string, number>>
                            : Readonly<Record<string, unknown>>
                      : never;

type EnumOr<T, J> = [J] extends [string] ? Exclude<J, `${string}_UNSPECIFIED`> : T;

type Snake<S extends string> = S extends `${infer A}${infer Rest}`
  ? A extends Lowercase<A>
    ? `${A}${Snake<Rest>}`
    : `_${Lowercase<A>}${Snake<Rest>}`
  : S;
