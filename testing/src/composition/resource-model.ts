import type { Observed } from "@holdfast/controller/composition/composition-step.ts";
import type { Member } from "@holdfast/controller/composition/composition.ts";
import type { Phase } from "@holdfast/controller/resource-kind/resource-kind.ts";

/** A resource of a model: its state after the requests so far. */
interface ModelRecord {
  phase: Phase;
  /** True once its newest change in place took effect. */
  hasTaken: boolean;
  marked: boolean;
}

/** Resources of a model with random outcomes: they start, fail, disappear and are deleted. */
export interface ResourceModel {
  readonly records: Map<string, ModelRecord>;
  /** Number of creations by id. */
  readonly created: Map<string, number>;
  observe(member: Member): Observed;
  create(id: string): void;
  act(id: string, succeeds: boolean): void;
  remove(id: string): void;
  /** Advances one pending resource; false when none is pending. */
  advance(pick: (count: number) => number, fates: { readonly fails: boolean; readonly vanishes: boolean }): boolean;
}

export function createResourceModel(): ResourceModel {
  const records = new Map<string, ModelRecord>();
  const created = new Map<string, number>();
  return {
    records,
    created,
    observe(member) {
      const record = member.step === "planned" ? undefined : records.get(member.id);
      const phase = record?.phase ?? "absent";
      return {
        phase,
        healthy: phase === "running",
        detail: phase === "running" ? null : phase,
        progressPct: 0,
        actual: {},
        outputsVersion: "",
        isChangeApplied: record?.hasTaken ?? true,
      };
    },
    create(id) {
      created.set(id, (created.get(id) ?? 0) + 1);
      records.set(id, { phase: "creating", hasTaken: true, marked: true });
    },
    act(id, succeeds) {
      const record = records.get(id);
      if (record !== undefined) Object.assign(record, { phase: "changing", hasTaken: succeeds });
    },
    remove(id) {
      const record = records.get(id);
      if (record !== undefined) record.phase = "deleting";
    },
    advance(pick, { fails, vanishes }) {
      const moving = [...records].filter(([, { phase }]) => phase !== "running" && phase !== "failed");
      const [id, record] = moving[pick(moving.length)] ?? [];
      if (id === undefined || record === undefined) return false;
      if (record.phase === "deleting" || vanishes) records.delete(id);
      else record.phase = fails ? "failed" : "running";
      return true;
    },
  };
}
