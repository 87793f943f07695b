import type { Samples } from "../metric/samples/samples.ts";
import { freshMs } from "./evaluate-rule.ts";
import { createSampleWindow, type SampleWindow } from "./sample-window.ts";

/** What rules need of a machine. */
export interface MachineNeed {
  readonly fromMs: number;
  readonly slots: ReadonlySet<number>;
}

/** Reads the samples that rules need: of each machine its past once, then only what is new. */
export interface SampleReader {
  /** Reads in one statement; resolves to the machines that told something new. Throws STORE_UNAVAILABLE. */
  read(needs: ReadonlyMap<string, MachineNeed>): Promise<ReadonlySet<string>>;
  /** Undefined until the machine's past was read. */
  window(machineId: string): SampleWindow | undefined;
}

/** A sample may come so much later than one after it and still be seen; later ones are found when the past is read anew. */
const overlapMs = freshMs;
/** Machines whose past is read in one statement. */
const pastsMax = 200;

export function createSampleReader(samples: Pick<Samples, "recent">): SampleReader {
  const windows = new Map<string, SampleWindow>();

  function fits(window: SampleWindow | undefined, { fromMs, slots }: MachineNeed): window is SampleWindow {
    return window !== undefined && window.fromMs <= fromMs && slots.isSubsetOf(window.slots);
  }

  return {
    async read(needs) {
      for (const machineId of windows.keys()) if (!needs.has(machineId)) windows.delete(machineId);
      let pasts = 0;
      const asked = [...needs].flatMap(([machineId, need]) => {
        const window = windows.get(machineId);
        if (fits(window, need))
          return [{ machineId, window, afterMs: Math.max(need.fromMs, (window.lastMs ?? 0) - overlapMs) }];
        pasts += 1;
        if (pasts > pastsMax) return [];
        return [{ machineId, window: createSampleWindow(need.fromMs, need.slots), afterMs: need.fromMs - 1 }];
      });
      const slots = new Set([...needs.values()].flatMap((need) => [...need.slots]));
      const rows = Map.groupBy(await samples.recent(asked, [...slots]), ({ machineId }) => machineId);
      const told = new Set<string>();
      for (const { machineId, window } of asked) {
        windows.set(machineId, window);
        if (window.add(rows.get(machineId) ?? [])) told.add(machineId);
        window.trim(needs.get(machineId)?.fromMs ?? 0);
      }
      return told;
    },
    window: (machineId) => windows.get(machineId),
  };
}
