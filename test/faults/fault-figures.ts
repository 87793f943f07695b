/** Times in milliseconds until the API reported a fault, and from its end until recovery. */
export interface FaultFigures {
  note(fault: string, figures: { readonly reportedMs?: number; readonly backMs: number }): void;
  /** Prints a table; the promise is 15 s on an idle machine. */
  print(): void;
}

export function createFaultFigures(): FaultFigures {
  const rows: string[] = [];
  const inSeconds = (ms: number | undefined) => (ms === undefined ? "-" : (ms / 1_000).toFixed(1)).padStart(8);
  return {
    note(fault, { reportedMs, backMs }) {
      rows.push(`${fault.padEnd(44)}${inSeconds(reportedMs)}${inSeconds(backMs)}`);
    },
    print() {
      console.log([`${"fault".padEnd(44)}${"shown s".padStart(8)}${"back s".padStart(8)}`, ...rows].join("\n"));
    },
  };
}
