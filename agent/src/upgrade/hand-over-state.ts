/**
 * What one agent tells the next one through the keeper; all else is on the disk, and the controller sends again what it
 * waits for.
 */
export interface HandOverState {
  /** Of the session that the next one goes on with. */
  readonly sessionId: string;
}

/** Bears what later versions add. */
export function readHandOverState(text: string): HandOverState {
  const { sessionId = "" } = JSON.parse(text) as Partial<HandOverState>;
  return { sessionId };
}
