import type { Contract } from "../../../../test/support/contract/contract.ts";

export default {
  kindBounds: {
    "dns-record": "names of machines and services",
  },
} satisfies Contract;
