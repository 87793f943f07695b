import { systems } from "@holdfast/controller/systems.ts";
import { type NounGroup, nounGroups } from "../../../sdk/src/cli/nouns.ts";
import { plaqueSystem } from "./plaque-system.ts";

/** The list of systems with one line more. */
export const systemsWithPlaques = [...systems, plaqueSystem] as const;

/** The list of nouns with one line more. */
export const nounsWithPlaques: readonly NounGroup[] = [
  ...nounGroups,
  {
    title: "Fixture",
    nouns: [{ name: "plaques", summary: "plaques", load: async () => (await import("./plaque-noun.ts")).addPlaques }],
  },
];
