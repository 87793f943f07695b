/** Messages for users by failure code, for failures whose own message is by a process, system or store. */
const messages: Readonly<Record<string, string>> = {
  interrupted: "The engine, the agent or the machine restarted during the work.",
  source_failed: "The engine's data could not be read completely.",
  store_failed: "The object store refused, lost or did not return an object.",
  no_room: "The machine's disk is full: expand the storage, or restore with a larger storage_size_gb.",
  failed: "The machine could not complete it.",
};

/** Failure message for users: the message of the code, or the detail if the code has none. */
export function failureMessage(code: string, detail: string): string {
  return Object.hasOwn(messages, code) ? (messages[code] ?? detail) : detail;
}
