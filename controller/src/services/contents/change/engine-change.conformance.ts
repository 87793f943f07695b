import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  kindBounds: {
    "engine-change": "one at a time of a user or database",
  },
  nameScopes: {
    "engine-changes.ts": "service: names in its engine",
  },
} satisfies Contract;
