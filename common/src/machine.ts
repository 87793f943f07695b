/** One row of a state table: in state `from`, `event` changes the state to `to` and has this effect. */
type Row = readonly [from: string, event: string, to: string, effect: string];

/** A state machine as data. Code, documentation page and tests read the same rows. */
export interface Machine<R extends readonly Row[]> {
  readonly name: string;
  readonly rows: R;
}

export type StateOf<M> = M extends Machine<infer R> ? R[number][0 | 2] : never;
export type EventOf<M> = M extends Machine<infer R> ? R[number][1] : never;
export type EffectOf<M> = M extends Machine<infer R> ? R[number][3] : never;

/** Throws at load time if two rows have the same state and event. */
export function defineMachine<const R extends readonly Row[]>(name: string, rows: R): Machine<R> {
  const seen = new Set<string>();
  for (const [from, event] of rows) {
    const key = `${from} ${event}`;
    if (seen.has(key)) throw new Error(`${name}: two rows for ${event} in ${from}`);
    seen.add(key);
  }
  return { name, rows };
}

/** The row for an event in a state; undefined if the event is ignored in that state. */
export function next<R extends readonly Row[]>(
  machine: Machine<R>,
  state: R[number][0 | 2],
  event: R[number][1],
): R[number] | undefined {
  return machine.rows.find((row) => row[0] === state && row[1] === event);
}
