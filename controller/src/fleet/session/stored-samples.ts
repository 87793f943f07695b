import { definePart } from "#kernel/part.ts";

/** The raw samples in the history. */
export interface StoredSamples {
  recent(
    queries: readonly { readonly machineId: string; readonly afterMs: number }[],
    slots: readonly number[],
    limit?: number,
  ): Promise<
    readonly { readonly machineId: string; readonly timeMs: number; readonly values: ReadonlyMap<number, number> }[]
  >;
  /** Number of a machine's values between two times (milliseconds since 1970), by roll-ups of minutes. */
  countValues(machineId: string, afterMs: number, beforeMs: number): Promise<number>;
}

export const storedSamplesPart = definePart<StoredSamples>("stored samples");
