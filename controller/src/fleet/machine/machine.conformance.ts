import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  kindBounds: {
    machine: "the quota of nodes of services",
  },
} satisfies Contract;
