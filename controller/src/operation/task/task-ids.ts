import type { Call } from "@holdfast/common/call.ts";
import { organizationOf } from "#access/caller.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";

/** The reference that a task id encodes. */
export interface TaskRef {
  /** Type of the task, which selects its source. */
  readonly type: string;
  /** Id of the managed service that performs the task. */
  readonly serviceId: string;
  /** Id of the task at its source, a UUID. */
  readonly key: string;
  /** Additional key of the source, such as the name of a queue; empty if it has none. */
  readonly detail: string;
}

/** Task ids in the API: references sealed for the organization, so that ids need no storage. */
export interface TaskIds {
  /** Equal references have equal ids under one master key. */
  seal(call: Call, ref: TaskRef): string;
  /** Returns undefined unless the id was sealed for the caller's organization. */
  open(call: Call, id: string): TaskRef | undefined;
}

const sealedPrefix = "sealed.";

export function createTaskIds(sealer: Pick<Sealer, "sealDeterministic" | "open">): TaskIds {
  const labelOf = (call: Call) => `task ${organizationOf(call)}`;
  return {
    seal(call, { type, serviceId, key, detail }) {
      const sealed = sealer.sealDeterministic(JSON.stringify([type, serviceId, key, detail]), labelOf(call));
      return sealed.slice(sealedPrefix.length);
    },
    open(call, id) {
      const label = labelOf(call);
      let plain: string;
      try {
        plain = sealer.open(sealedPrefix + id, label);
      } catch {
        return undefined;
      }
      const [type, serviceId, key, detail] = JSON.parse(plain) as [string, string, string, string];
      return { type, serviceId, key, detail };
    },
  };
}
