import type { Contract } from "../../../../test/support/contract/contract.ts";

export default {
  kindBounds: {
    task: "work of machines",
  },
} satisfies Contract;
