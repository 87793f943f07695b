/** Time without accepted writes, by fault. */
export interface FailoverFigures {
  note(fault: string, withoutWritesMs: number, hasFailedOver: boolean): void;
  print(): void;
}

export function createFailoverFigures(): FailoverFigures {
  const byFault = new Map<string, { times: number[]; failovers: number }>();
  const inSeconds = (ms: number) => (ms / 1_000).toFixed(1).padStart(8);
  return {
    note(fault, withoutWritesMs, hasFailedOver) {
      const figures = byFault.get(fault) ?? { times: [], failovers: 0 };
      figures.times.push(withoutWritesMs);
      figures.failovers += hasFailedOver ? 1 : 0;
      byFault.set(fault, figures);
    },
    print() {
      const lines = [...byFault]
        .toSorted(([a], [b]) => a.localeCompare(b))
        .map(([fault, { times, failovers }]) => {
          const counts = `${String(times.length).padStart(6)}${String(failovers).padStart(10)}`;
          return `${fault.padEnd(64)}${counts}${inSeconds(quantile(times, 0.5))}${inSeconds(quantile(times, 0.95))}`;
        });
      const head = `${"fault".padEnd(64)}${"times".padStart(6)}${"failovers".padStart(10)}${"median s".padStart(8)}${"p95 s".padStart(8)}`;
      console.log([head, ...lines].join("\n"));
    },
  };
}

/** Quantile of the values: the minimum value that at least `share` of the values do not exceed. */
function quantile(values: readonly number[], share: number): number {
  const inOrder = values.toSorted((a, b) => a - b);
  return inOrder[Math.ceil(inOrder.length * share) - 1] ?? 0;
}
