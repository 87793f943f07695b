import { systems } from "@holdfast/controller/systems.ts";
import { type NounGroup, nounGroups } from "@holdfast/cli/nouns.ts";
import { noteSystem } from "./note-system.ts";

/** All systems, and the system of notes. */
export const systemsWithNotes = [...systems, noteSystem] as const;

/** All nouns of the command line, and the noun of notes. */
export const nounsWithNotes: readonly NounGroup[] = [
  ...nounGroups,
  {
    title: "Fixture",
    nouns: [{ name: "notes", summary: "notes", load: async () => (await import("./note-noun.ts")).addNotes }],
  },
];
