import type { Platform } from "@holdfast/testing/platform/platform.ts";

/** Polls the engines of some machines until it is stopped. */
export interface EngineWatch {
  /** Ids of the machines whose engine is another process than at first, in the order of their restarts. */
  restarted(): string[];
  /** Maximum number of machines without an engine at the same time. */
  mostDown(): number;
  stop(): void;
}

const everyMs = 200;

export function watchEngines(platform: Platform, ids: readonly string[]): EngineWatch {
  const enginesNow = () => {
    const { machines } = platform.processes();
    return new Map(ids.map((id) => [id, machines.find((machine) => machine.id === id)?.engine]));
  };
  const first = enginesNow();
  const others = new Set<string>();
  let max = 0;
  const timer = setInterval(() => {
    const engines = [...enginesNow()];
    max = Math.max(max, engines.filter(([, engine]) => engine === undefined).length);
    for (const [id, engine] of engines) if (engine !== undefined && engine !== first.get(id)) others.add(id);
  }, everyMs);
  return {
    restarted: () => [...others],
    mostDown: () => max,
    stop: () => clearInterval(timer),
  };
}
