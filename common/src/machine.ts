/** One row of a life cycle: in this state, this event leads there and has this effect. */
type Row = readonly [from: string, event: string, to: string, effect: string];

/** A life cycle as data. The docs page and the tests read the same rows that the code follows. */
export interface Machine<R extends readonly Row[]> {
  readonly name: string;
  readonly rows: R;
}

export type StateOf<M> = M extends Machine<infer R> ? R[number][0 | 2] : never;
export type EventOf<M> = M extends Machine<infer R> ? R[number][1] : never;
export type EffectOf<M> = M extends Machine<infer R> ? R[number][3] : never;

/** Throws at load if two rows share a state and an event: a table has one reading. */
export function defineMachine<const R extends readonly Row[]>(name: string, rows: R): Machine<R> {
  const seen = new Set<string>();
  for (const [from, event] of rows) {
    const key = `${from} ${event}`;
    if (seen.has(key)) throw new Error(`${name}: two rows for ${event} in ${from}`);
    seen.add(key);
  }
  return { name, rows };
}

/** The row for an event in a state, or undefined where the table has none: the event means nothing there. */
export function next<R extends readonly Row[]>(
  machine: Machine<R>,
  state: R[number][0 | 2],
  event: R[number][1],
): R[number] | undefined {
  return machine.rows.find((row) => row[0] === state && row[1] === event);
}
