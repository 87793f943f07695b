import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  kindBounds: {
    task: "work of machines",
  },
} satisfies Contract;
