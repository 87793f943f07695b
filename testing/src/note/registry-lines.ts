import type { RegistryLine } from "../platform/extended-checkout.ts";

const folder = "testing/src/note";

/** All lines that notes have outside of their files; the class of the SDK is beside their noun. */
export const registryLines: readonly RegistryLine[] = [
  {
    file: "controller/src/systems.ts",
    below: "import { egressSystem }",
    line: `import { noteSystem } from "../../${folder}/note-system.ts";`,
  },
  {
    file: "controller/src/systems.ts",
    below: "  operatorSystem,",
    line: "  noteSystem,",
  },
  {
    file: "cli/src/nouns.ts",
    below: '{ title: "Databases", nouns: [',
    line: `    { name: "notes", summary: "notes", load: async () => (await import("../../${folder}/note-noun.ts")).addNotes },`,
  },
];
