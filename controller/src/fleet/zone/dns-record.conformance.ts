import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  kindBounds: {
    "dns-record": "names of machines and services",
  },
} satisfies Contract;
