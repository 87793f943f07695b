/** Sentences for users by the code of a failure whose own words are those of a process, a system or a store. */
const wordsByCode: Readonly<Record<string, string>> = {
  interrupted: "The engine, the agent or the machine restarted meanwhile.",
  source_failed: "The engine did not let all of its data be read.",
  store_failed: "The object store refused, lost or did not return an object.",
  no_room: "The disk of the machine is full: expand the storage.",
  failed: "The machine could not go on with it.",
};

/** A failure in words for users: those of the catalog, else what Holdfast itself said of it. */
export function failureWords(code: string, said: string): string {
  return Object.hasOwn(wordsByCode, code) ? (wordsByCode[code] ?? said) : said;
}
