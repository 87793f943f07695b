import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  kindBounds: {
    "inference-account": "one an organization and a month, two a key",
  },
} satisfies Contract;
