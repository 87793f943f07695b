import type { Contract } from "../../../../test/support/contract/contract.ts";

export default {
  kindBounds: {
    machine: "nodes of services",
  },
} satisfies Contract;
