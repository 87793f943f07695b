import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  kindBounds: {
    task: "the work that controllers request of machines",
  },
} satisfies Contract;
