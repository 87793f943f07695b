/** T with any of its fields, at every depth, also in what functions return. Byte arrays and maps remain complete. */
type Partly<T> = T extends (...args: infer Arguments) => infer Result
  ? (...args: Arguments) => Partly<Result>
  : T extends Promise<infer Value>
    ? Promise<Partly<Value>>
    : T extends Uint8Array | Date | ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
      ? T
      : T extends readonly (infer Item)[]
        ? readonly Partly<Item>[]
        : T extends IterableIterator<infer Item>
          ? Iterable<Partly<Item>>
          : T extends object
            ? { readonly [K in keyof T]?: Partly<T[K]> | undefined }
            : T;

/** A value of which a test needs only these fields; the type of each is checked. */
export function partial<T>(fields: Partly<T>): T {
  // oxlint-disable-next-line holdfast/no-double-cast -- the one place in which tests leave fields out
  return fields as unknown as T;
}
