/** How long it took, in milliseconds, until the API showed a fault, and after its end until everything was as before. */
export interface FaultFigures {
  note(fault: string, figures: { readonly shownMs?: number; readonly backMs: number }): void;
  /** As a table; what is promised is 15 s on a quiet machine. */
  print(): void;
}

export function createFaultFigures(): FaultFigures {
  const rows: string[] = [];
  const inSeconds = (ms: number | undefined) => (ms === undefined ? "-" : (ms / 1_000).toFixed(1)).padStart(8);
  return {
    note(fault, { shownMs, backMs }) {
      rows.push(`${fault.padEnd(44)}${inSeconds(shownMs)}${inSeconds(backMs)}`);
    },
    print() {
      console.log([`${"fault".padEnd(44)}${"shown s".padStart(8)}${"back s".padStart(8)}`, ...rows].join("\n"));
    },
  };
}
