import { join } from "node:path";
import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import { type Release, ReleaseSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/** A machine has two slots for releases, so that a new one starts beside the one that serves. */
export type SlotName = "a" | "b";
export const slotNames: readonly SlotName[] = ["a", "b"];

/** A release that has a slot. It is stored before anything of it starts, and removed after all of it was deleted. */
export interface Slot {
  readonly release: Release;
  /** Restart counter of the spec that the current run satisfies. */
  readonly restartCount: bigint;
  /** True once it was ready: then it is restarted whenever it ends. */
  readonly wasReady: boolean;
  /** Reason why the release never became ready, with its last lines; it is not started again. */
  readonly failure?: { readonly reason: string; readonly lastLines: readonly string[] };
  /** Time in milliseconds since 1970 at which a release without requests from clients is stopped at the latest. */
  readonly drainUntil?: number;
}

export interface Slots {
  readonly a?: Slot;
  readonly b?: Slot;
  /** The slot that gets the requests; absent before the first release is ready. */
  readonly serving?: SlotName;
}

/** The slots on disk, by which an agent continues what an earlier one began. */
export interface SlotFile {
  load(): Promise<Slots>;
  save(slots: Slots): Promise<void>;
}

type StoredSlot = Omit<Slot, "release" | "restartCount"> & {
  readonly release: JsonValue;
  readonly restartCount: string;
};

export function createSlotFile(stateDir: string): SlotFile {
  const path = join(stateDir, "workload", "slots.json");
  return {
    async load() {
      const text = await readIfExists(path);
      if (text === undefined) return {};
      const stored = JSON.parse(text.toString("utf8")) as {
        readonly [N in SlotName]?: StoredSlot;
      } & Pick<Slots, "serving">;
      return {
        ...(stored.a !== undefined && { a: slotOf(stored.a) }),
        ...(stored.b !== undefined && { b: slotOf(stored.b) }),
        ...(stored.serving !== undefined && { serving: stored.serving }),
      };
    },
    async save({ a, b, serving }) {
      const stored = { a: a && storedOf(a), b: b && storedOf(b), serving };
      await writeDurably(path, JSON.stringify(stored));
    },
  };
}

function slotOf({ release, restartCount, ...slot }: StoredSlot): Slot {
  return {
    ...slot,
    release: fromJson(ReleaseSchema, release, { ignoreUnknownFields: true }),
    restartCount: BigInt(restartCount),
  };
}

function storedOf({ release, restartCount, ...slot }: Slot): StoredSlot {
  return { ...slot, release: toJson(ReleaseSchema, release), restartCount: String(restartCount) };
}
