import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  nameScopes: {
    "launch.ts": "organization",
  },
} satisfies Contract;
