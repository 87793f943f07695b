import type { Observed } from "@holdfast/controller/composition/composition-step.ts";
import type { Member } from "@holdfast/controller/composition/composition.ts";
import type { Phase } from "@holdfast/controller/resource-kind/resource-kind.ts";

/** A resource of a model: its state after the requests so far. */
interface Thing {
  phase: Phase;
  /** True once its newest change in place took effect. */
  hasTaken: boolean;
  marked: boolean;
}

/** Resources of a model with random outcomes: they start, fail, disappear and are deleted. */
export interface ModelWorld {
  readonly things: Map<string, Thing>;
  /** Number of creations by id. */
  readonly made: Map<string, number>;
  observe(member: Member): Observed;
  create(id: string): void;
  act(id: string, succeeds: boolean): void;
  remove(id: string): void;
  /** Advances one pending resource; false when none is pending. */
  stir(pick: (count: number) => number, fates: { readonly fails: boolean; readonly vanishes: boolean }): boolean;
}

export function createModelWorld(): ModelWorld {
  const things = new Map<string, Thing>();
  const made = new Map<string, number>();
  return {
    things,
    made,
    observe(member) {
      const thing = member.step === "planned" ? undefined : things.get(member.id);
      const phase = thing?.phase ?? "absent";
      return {
        phase,
        healthy: phase === "running",
        detail: phase === "running" ? null : phase,
        progressPct: 0,
        actual: {},
        outputsVersion: "",
        isChangeApplied: thing?.hasTaken ?? true,
      };
    },
    create(id) {
      made.set(id, (made.get(id) ?? 0) + 1);
      things.set(id, { phase: "creating", hasTaken: true, marked: true });
    },
    act(id, succeeds) {
      const thing = things.get(id);
      if (thing !== undefined) Object.assign(thing, { phase: "changing", hasTaken: succeeds });
    },
    remove(id) {
      const thing = things.get(id);
      if (thing !== undefined) thing.phase = "deleting";
    },
    stir(pick, { fails, vanishes }) {
      const moving = [...things].filter(([, { phase }]) => phase !== "running" && phase !== "failed");
      const [id, thing] = moving[pick(moving.length)] ?? [];
      if (id === undefined || thing === undefined) return false;
      if (thing.phase === "deleting" || vanishes) things.delete(id);
      else thing.phase = fails ? "failed" : "running";
      return true;
    },
  };
}
