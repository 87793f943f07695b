import { systems } from "@holdfast/controller/systems.ts";
import { type NounGroup, nounGroups } from "@holdfast/cli/nouns.ts";
import { noteSystem } from "./note-system.ts";

/** The list of systems with one more line. */
export const systemsWithNotes = [...systems, noteSystem] as const;

/** The list of nouns with one more line. */
export const nounsWithNotes: readonly NounGroup[] = [
  ...nounGroups,
  {
    title: "Fixture",
    nouns: [{ name: "notes", summary: "notes", load: async () => (await import("./note-noun.ts")).addNotes }],
  },
];
