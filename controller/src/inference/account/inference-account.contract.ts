import type { Contract } from "../../../../test/support/contract/contract.ts";

export default {
  kindBounds: {
    "inference-account": "one an organization and a month, two a key",
  },
} satisfies Contract;
