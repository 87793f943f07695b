import type { Contract } from "../../../test/support/contract/contract.ts";

export default {
  nameScopes: {
    "launch.ts": "organization",
  },
} satisfies Contract;
