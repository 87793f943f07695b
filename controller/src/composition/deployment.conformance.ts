import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  kindBounds: {
    deployment: "the newest of a project, stack or pipeline; older ones move to the history",
  },
  nameScopes: {
    "name-holder.ts": "organization",
  },
} satisfies Contract;
