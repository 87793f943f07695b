import type { Contract } from "@holdfast/testing/contract/contract.ts";

export default {
  nameScopes: {
    "unit-of-work.ts": "by the claim: an organization, unless its kind has globalNames",
  },
} satisfies Contract;
