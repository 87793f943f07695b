import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  kindBounds: {
    machine: "nodes of services",
  },
} satisfies Contract;
