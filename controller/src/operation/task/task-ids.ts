import type { Call } from "@holdfast/common/call.ts";
import { organizationOf } from "#access/caller.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";

/** The reference that a task id encodes. */
export interface TaskRef {
  /** Type of the task, which selects its source. */
  readonly type: string;
  /** Id of the managed service that performs it. */
  readonly serviceId: string;
  /** The task's id at its source: a UUID. */
  readonly key: string;
  /** Further key of the source, such as the name of a queue; empty for none. */
  readonly detail: string;
}

/** Task ids for callers: references sealed for the organization, so that nothing is stored to find a task again. */
export interface TaskIds {
  /** Equal references have equal ids as long as the master key is the same. */
  seal(call: Call, ref: TaskRef): string;
  /** Undefined unless the id belongs to the caller's organization. */
  open(call: Call, id: string): TaskRef | undefined;
}

const mark = "sealed.";

export function createTaskIds(sealer: Pick<Sealer, "sealDeterministic" | "open">): TaskIds {
  const labelOf = (call: Call) => `task ${organizationOf(call)}`;
  return {
    seal(call, { type, serviceId, key, detail }) {
      const sealed = sealer.sealDeterministic(JSON.stringify([type, serviceId, key, detail]), labelOf(call));
      return sealed.slice(mark.length);
    },
    open(call, id) {
      const label = labelOf(call);
      let plain: string;
      try {
        plain = sealer.open(mark + id, label);
      } catch {
        return undefined;
      }
      const [type, serviceId, key, detail] = JSON.parse(plain) as [string, string, string, string];
      return { type, serviceId, key, detail };
    },
  };
}
